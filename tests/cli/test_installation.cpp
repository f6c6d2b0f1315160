#include <doctest/doctest.h>

#include <fstream>

#include "cli/fake_home.h"
#include "plimsoll/base/errors.h"

namespace test_installation {

using namespace plimsoll::cli;
using plimsoll::InvalidArgument;
namespace fs = std::filesystem;

TEST_CASE("all versioned libraries of a folder are preloaded, the driver first") {
  const TemporaryFolder folder;
  for (const char* name : {"libcublas.so.13", "libcuda.so.1", "libnccl.so.2", "libplimsoll_pretend.so", "notes.txt"}) {
    std::ofstream(folder.path() / name);
  }
  std::vector<std::string> names;
  for (const fs::path& library : face_libraries(folder.path())) names.push_back(library.filename());
  CHECK(names == std::vector<std::string>{"libcuda.so.1", "libcublas.so.13", "libnccl.so.2"});
  CHECK(face_libraries("/nowhere").empty());
}

TEST_CASE("a program is a path, or a name on PATH") {
  const TemporaryFolder folder;
  FakeHome::write_program(folder.path() / "py", "exit 0");
  std::ofstream(folder.path() / "text") << "no program";
  const std::string path = "/nowhere::" + folder.path().string();
  CHECK(find_program("py", path) == folder.path() / "py");
  CHECK(find_program((folder.path() / "py").string(), "") == folder.path() / "py");
  CHECK_THROWS_WITH_AS(find_program("text", path), "--python: PATH has no text: give the path of an interpreter",
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(find_program("/nowhere/py", path), "--python: /nowhere/py does not exist", InvalidArgument);
  CHECK_THROWS_WITH_AS(find_program(folder.path().string() + "/text", path),
                       doctest::Contains("is not an executable file"), InvalidArgument);
}

TEST_CASE("plimsoll's own interpreter goes with the libraries beside the command") {
  const FakeHome home("exit 0");
  const Interpreter found = find_interpreter({}, home.installation());
  CHECK(found.python == home.python());
  CHECK(found.library_folder == home.path() / "build/pretend");
  CHECK(found.libraries.size() == 1);
}

TEST_CASE("a missing part is refused with the way to get it") {
  const FakeHome home("exit 0");
  fs::remove(home.path() / "build/pretend/libcuda.so.1");
  CHECK_THROWS_WITH_AS(find_interpreter({}, home.installation()),
                       doctest::Contains("plimsoll was set up with a CPU build of torch"), InvalidArgument);
  fs::remove(home.python());
  CHECK_THROWS_WITH_AS(find_interpreter({}, home.installation()), doctest::Contains("run ./plimsoll in "),
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(find_interpreter({}, {"/nowhere", "/nowhere"}), doctest::Contains("set PLIMSOLL_HOME"),
                       InvalidArgument);
}

TEST_CASE("libraries for another interpreter come from the script that builds them") {
  const FakeHome home("exit 0");
  std::ofstream(home.path() / "scripts/pretend_for.py")
      << "import sys\nassert sys.argv[1:] == ['--python', '" << home.python().string() << "'], sys.argv\nprint('"
      << (home.path() / "build/pretend").string() << "')\n";
  std::string python = home.python().string();
  CHECK(find_interpreter(python, home.installation()).library_folder == home.path() / "build/pretend");
  std::ofstream(home.path() / "scripts/pretend_for.py") << "raise SystemExit(2)\n";
  CHECK_THROWS_WITH_AS(find_interpreter(python, home.installation()),
                       doctest::Contains("CUDA 12 and CUDA 13 builds of torch 2.5 to 2.13 are supported"),
                       InvalidArgument);
}

namespace {

/// An installed package. Its interpreter is a shell script in another folder.
class FakePackage {
 public:
  FakePackage() {
    for (const char* part : {"bin", "run", "pretend", "profiles"}) fs::create_directories(path() / part);
    std::ofstream(path() / "run/__main__.py");
    std::ofstream(path() / "pretend/libcuda.so.1");
    for (const char* environment : {"one", "other"}) fs::create_directories(folder_.path() / environment);
    FakeHome::write_program(folder_.path() / "program", "exit 0");
    fs::create_symlink(folder_.path() / "program", python());
    fs::create_symlink("python", folder_.path() / "one/python3");
    fs::create_symlink(folder_.path() / "program", other_python());
  }

  fs::path path() const { return folder_.path() / "site-packages/plimsoll"; }
  fs::path python() const { return folder_.path() / "one/python"; }
  fs::path other_python() const { return folder_.path() / "other/python"; }
  Installation installation() const { return find_installation(path() / "bin", "", python()); }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a command in an installed package has all its parts there") {
  const FakePackage package;
  const Installation found = package.installation();
  CHECK(found.is_package());
  CHECK(found.home == package.path());
  CHECK(found.profiles() == package.path() / "profiles");
  CHECK(found.runner() == package.path() / "run/__main__.py");
  CHECK(found.own_libraries() == package.path() / "pretend");
  const Interpreter interpreter = find_interpreter({}, found);
  CHECK(interpreter.python == package.python());
  CHECK(interpreter.library_folder == package.path() / "pretend");
  CHECK(interpreter.libraries == std::vector{package.path() / "pretend/libcuda.so.1"});
}

TEST_CASE("PLIMSOLL_HOME wins over the package only if it has the sources") {
  const FakePackage package;
  const FakeHome home("exit 0");
  const fs::path binary_folder = package.path() / "bin";
  const Installation found = find_installation(binary_folder, home.path(), package.python());
  CHECK_FALSE(found.is_package());
  CHECK(found.home == home.path());
  CHECK(found.own_python() == home.python());
  CHECK(find_installation(binary_folder, "/nowhere", package.python()).home == package.path());
}

TEST_CASE("a command outside of a package belongs to the sources that it was built from, or to PLIMSOLL_HOME") {
  CHECK(find_installation("/nowhere/bin", "", "/usr/bin/python3").home == PLIMSOLL_SOURCE_DIR);
  const Installation named = find_installation("/nowhere/bin", "/elsewhere", "/usr/bin/python3");
  CHECK_FALSE(named.is_package());
  CHECK(named.home == "/elsewhere");
}

TEST_CASE("a package runs its own interpreter, by any of its names, and no other") {
  const FakePackage package;
  std::string python = (package.python().parent_path() / "python3").string();
  CHECK(find_interpreter(python, package.installation()).python == package.python());
  // The same program, but of another environment: it may have another torch.
  python = package.other_python().string();
  const std::string message = "--python: the plimsoll in " + package.path().string() +
                              " has libraries for the torch of " + package.python().string() +
                              " only. Install plimsoll for " + package.other_python().string() +
                              " too, or use ./plimsoll of the source tree";
  CHECK_THROWS_WITH_AS(find_interpreter(python, package.installation()), message.c_str(), InvalidArgument);
  python = "/nowhere/python";
  CHECK_THROWS_WITH_AS(find_interpreter(python, package.installation()), "--python: /nowhere/python does not exist",
                       InvalidArgument);
}

TEST_CASE("a package names the missing part, and the way to get it") {
  const FakePackage package;
  const fs::path binary_folder = package.path() / "bin";
  const std::string todo =
      ": start plimsoll as `plimsoll`, or as `python -m plimsoll` with the interpreter that has it";
  CHECK_THROWS_WITH_AS(find_interpreter({}, find_installation(binary_folder, "", "")),
                       ("PLIMSOLL_PYTHON is not set" + todo).c_str(), InvalidArgument);
  CHECK_THROWS_WITH_AS(find_interpreter({}, find_installation(binary_folder, "", "/nowhere/python")),
                       ("PLIMSOLL_PYTHON is /nowhere/python, which is not an executable file" + todo).c_str(),
                       InvalidArgument);
  fs::remove_all(package.path() / "pretend");
  CHECK_THROWS_WITH_AS(find_interpreter({}, package.installation()),
                       doctest::Contains("this plimsoll was installed with a CPU build of torch. Install a CUDA build"),
                       InvalidArgument);
}

}  // namespace test_installation
