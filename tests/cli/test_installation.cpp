#include <doctest/doctest.h>

#include <fstream>

#include "cli/fake_home.h"
#include "plimsoll/base/errors.h"

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
  CHECK_THROWS_WITH_AS(find_program("text", path),
                       "--python: there is no text on PATH; give the path of an interpreter", InvalidArgument);
  CHECK_THROWS_WITH_AS(find_program("/nowhere/py", path), "--python: /nowhere/py does not exist", InvalidArgument);
  CHECK_THROWS_WITH_AS(find_program(folder.path().string() + "/text", path),
                       doctest::Contains("is not a program that can be run"), InvalidArgument);
}

TEST_CASE("plimsoll's own interpreter goes with the libraries beside the command") {
  const FakeHome home("exit 0");
  const Interpreter found = find_interpreter({}, home.installation());
  CHECK(found.python == home.python());
  CHECK(found.library_folder == home.path() / "build/pretend");
  CHECK(found.libraries.size() == 1);
}

TEST_CASE("what is missing is said, with what to do") {
  const FakeHome home("exit 0");
  fs::remove(home.path() / "build/pretend/libcuda.so.1");
  CHECK_THROWS_WITH_AS(find_interpreter({}, home.installation()), doctest::Contains("is a CPU build"), InvalidArgument);
  fs::remove(home.python());
  CHECK_THROWS_WITH_AS(find_interpreter({}, home.installation()), doctest::Contains("run ./plimsoll in "),
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(find_interpreter({}, {"/nowhere", "/nowhere"}), doctest::Contains("set PLIMSOLL_HOME"),
                       InvalidArgument);
}

TEST_CASE("libraries for another interpreter come from the script that makes them") {
  const FakeHome home("exit 0");
  std::ofstream(home.path() / "scripts/pretend_for.py")
      << "import sys\nassert sys.argv[1:] == ['--python', '" << home.python().string() << "'], sys.argv\nprint('"
      << (home.path() / "build/pretend").string() << "')\n";
  RunOptions options;
  options.python = home.python().string();
  CHECK(find_interpreter(options, home.installation()).library_folder == home.path() / "build/pretend");
  std::ofstream(home.path() / "scripts/pretend_for.py") << "raise SystemExit(2)\n";
  CHECK_THROWS_WITH_AS(find_interpreter(options, home.installation()),
                       doctest::Contains("CUDA 12 and CUDA 13 builds of torch 2.5 to 2.13 are supported"),
                       InvalidArgument);
}
