#include "plimsoll/cli/installation.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/child_process.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSupported = "CUDA 12 and CUDA 13 builds of torch 2.5 to 2.13 are supported";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_program(const fs::path& file) {
  std::error_code error;
  return fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

Interpreter with_libraries(const fs::path& python, const fs::path& folder) {
  Interpreter found{python, folder, face_libraries(folder)};
  if (found.libraries.empty() || found.libraries.front().filename() != "libcuda.so.1") {
    throw InvalidArgument("there are no pretend GPU libraries in " + folder.string() +
                          ": the torch that plimsoll was set up with is a CPU build, or the build is not complete; " +
                          kSupported +
                          "; set up again with a CUDA build, or name an interpreter that has one with --python");
  }
  return found;
}

}  // namespace

fs::path Installation::own_libraries() const {
  std::error_code error;
  const fs::path beside = binary_folder / "pretend";
  return fs::is_directory(beside, error) ? beside : binary_folder.parent_path() / "pretend";
}

Installation find_installation() {
  Installation installation;
  const std::string home = variable("PLIMSOLL_HOME");
  installation.home = home.empty() ? fs::path(PLIMSOLL_SOURCE_DIR) : fs::path(home);
  std::error_code error;
  installation.binary_folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  return installation;
}

std::string version() { return PLIMSOLL_VERSION; }

std::vector<fs::path> face_libraries(const fs::path& folder) {
  std::vector<fs::path> libraries;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("lib") && name.find(".so.") != std::string::npos) libraries.push_back(entry.path());
  }
  std::sort(libraries.begin(), libraries.end());
  // The driver first: the others ask for it by name when they are loaded.
  std::stable_partition(libraries.begin(), libraries.end(),
                        [](const fs::path& library) { return library.filename() == "libcuda.so.1"; });
  return libraries;
}

fs::path find_program(const std::string& program, const std::string& path) {
  if (program.find('/') != std::string::npos) {
    std::error_code error;
    if (is_program(program)) return fs::absolute(program);
    const bool exists = fs::exists(program, error);
    throw InvalidArgument("--python: " + program + (exists ? " is not a program that can be run" : " does not exist"));
  }
  std::istringstream folders(path);
  std::string folder;
  while (std::getline(folders, folder, ':')) {
    if (!folder.empty() && is_program(fs::path(folder) / program)) return fs::path(folder) / program;
  }
  throw InvalidArgument("--python: there is no " + program + " on PATH; give the path of an interpreter");
}

Interpreter find_interpreter(const RunOptions& options, const Installation& installation) {
  std::error_code error;
  if (!fs::exists(installation.runner(), error)) {
    throw InvalidArgument(installation.home.string() +
                          " is not the folder of plimsoll's sources; set PLIMSOLL_HOME to where they are");
  }
  if (!options.python) {
    if (!is_program(installation.own_python())) {
      throw InvalidArgument("there is no " + installation.own_python().string() + ": run ./plimsoll in " +
                            installation.home.string() + ", which sets it up, or name an interpreter with --python");
    }
    return with_libraries(installation.own_python(), installation.own_libraries());
  }
  const fs::path python = find_program(*options.python, variable("PATH"));
  // Finds the libraries that fit this interpreter's torch, or builds them; says on standard error what it does.
  const fs::path script = installation.home / "scripts/pretend_for.py";
  const Captured answer = capture_child({"python3", script.string(), "--python", python.string()});
  if (answer.exit.exit_code != 0) {
    throw InvalidArgument("--python: no pretend GPU for the torch of " + python.string() + ", for the reason above; " +
                          kSupported);
  }
  return with_libraries(python, trimmed(answer.output));
}

}  // namespace plimsoll::cli
