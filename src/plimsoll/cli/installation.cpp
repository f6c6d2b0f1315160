#include "plimsoll/cli/installation.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <vector>

#include "plimsoll/base/errors.h"
#include "plimsoll/base/text.h"
#include "plimsoll/cli/process/child_process.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSupported = "CUDA 12 and CUDA 13 builds of torch 2.5 to 2.13 are supported";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

/// Whether both name one program in one folder. (Interpreters of two environments may be links to one program.)
bool is_same_interpreter(const fs::path& one, const fs::path& other) {
  std::error_code error;
  return fs::equivalent(one, other, error) && fs::equivalent(one.parent_path(), other.parent_path(), error);
}

Interpreter with_libraries(const fs::path& python, const fs::path& folder, Layout layout) {
  Interpreter found{python, folder, face_libraries(folder)};
  if (found.libraries.empty() || found.libraries.front().filename() != "libcuda.so.1") {
    if (layout == Layout::kPackage) {
      throw InvalidArgument(folder.string() +
                            " has no pretend GPU libraries: this plimsoll was installed with a CPU build of torch. "
                            "Install a CUDA build of torch 2.13 (no GPU is needed), then plimsoll again: `pip install "
                            "--no-build-isolation --force-reinstall --no-deps .` in its source tree");
    }
    throw InvalidArgument(folder.string() +
                          " has no pretend GPU libraries: plimsoll was set up with a CPU build of torch, or the build "
                          "is not complete; " +
                          kSupported + "; set up again with a CUDA build, or name an interpreter with --python");
  }
  return found;
}

Interpreter interpreter_of_package(const std::optional<std::string>& named, const Installation& package) {
  const fs::path own = package.own_python();
  if (!is_program(own)) {
    const std::string reason =
        own.empty() ? " is not set" : " is " + own.string() + ", which is not an executable file";
    throw InvalidArgument(
        "PLIMSOLL_PYTHON" + reason +
        ": start plimsoll as `plimsoll`, or as `python -m plimsoll` with the interpreter that has it");
  }
  const fs::path python = named ? find_program(*named, variable("PATH")) : own;
  if (!is_same_interpreter(python, own)) {
    throw InvalidArgument("--python: the plimsoll in " + package.home.string() + " has libraries for the torch of " +
                          own.string() + " only. Install plimsoll for " + python.string() +
                          " too, or use ./plimsoll of the source tree");
  }
  return with_libraries(own, package.own_libraries(), package.layout);
}

}  // namespace

bool is_program(const fs::path& file) {
  std::error_code error;
  return fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0;
}

fs::path Installation::own_libraries() const {
  if (is_package()) return home / "pretend";
  std::error_code error;
  const fs::path beside = binary_folder / "pretend";
  return fs::is_directory(beside, error) ? beside : binary_folder.parent_path() / "pretend";
}

Installation find_installation() {
  std::error_code error;
  return find_installation(fs::read_symlink("/proc/self/exe", error).parent_path(), variable("PLIMSOLL_HOME"),
                           variable("PLIMSOLL_PYTHON"));
}

Installation find_installation(const fs::path& binary_folder, const fs::path& named_home,
                               const fs::path& package_python) {
  std::error_code error;
  const Installation sources{named_home.empty() ? fs::path(PLIMSOLL_SOURCE_DIR) : named_home, binary_folder};
  if (!named_home.empty() && fs::exists(sources.runner(), error)) return sources;
  const Installation package{binary_folder.parent_path(), binary_folder, Layout::kPackage, package_python};
  return fs::exists(package.runner(), error) ? package : sources;
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
  // The driver first: the others load it by name.
  std::stable_partition(libraries.begin(), libraries.end(),
                        [](const fs::path& library) { return library.filename() == "libcuda.so.1"; });
  return libraries;
}

fs::path find_program(const std::string& program, const std::string& path) {
  if (program.find('/') != std::string::npos) {
    std::error_code error;
    if (is_program(program)) return fs::absolute(program);
    const bool exists = fs::exists(program, error);
    throw InvalidArgument("--python: " + program + (exists ? " is not an executable file" : " does not exist"));
  }
  std::istringstream folders(path);
  std::string folder;
  while (std::getline(folders, folder, ':')) {
    if (!folder.empty() && is_program(fs::path(folder) / program)) return fs::path(folder) / program;
  }
  throw InvalidArgument("--python: PATH has no " + program + ": give the path of an interpreter");
}

Interpreter find_interpreter(const std::optional<std::string>& named, const Installation& installation) {
  std::error_code error;
  if (installation.is_package()) return interpreter_of_package(named, installation);
  if (!fs::exists(installation.runner(), error)) {
    throw InvalidArgument(installation.home.string() +
                          " is not the folder of plimsoll's sources: set PLIMSOLL_HOME to that folder");
  }
  if (!named) {
    if (!is_program(installation.own_python())) {
      throw InvalidArgument(installation.own_python().string() + " does not exist: run ./plimsoll in " +
                            installation.home.string() + " to set it up, or name an interpreter with --python");
    }
    return with_libraries(installation.own_python(), installation.own_libraries(), installation.layout);
  }
  const fs::path python = find_program(*named, variable("PATH"));
  // Finds or builds the libraries for this interpreter's torch. Prints its progress to standard error.
  const fs::path script = installation.home / "scripts/pretend_for.py";
  const Captured answer = capture_child({"python3", script.string(), "--python", python.string()});
  if (answer.exit.exit_code != 0) {
    throw InvalidArgument("--python " + python.string() + " cannot be used, for the reason above; " + kSupported);
  }
  return with_libraries(python, trimmed(answer.output), installation.layout);
}

pretend::Profile profile_for(const std::string& gpu, std::optional<Bytes> memory, const Installation& installation) {
  pretend::Profile profile = pretend::find_profile(gpu, installation.profiles());
  if (!memory) return profile;
  if (*memory <= profile.context) {
    throw InvalidArgument("--gpu-memory " + format_bytes(*memory) +
                          " is too small: the CUDA context of a process takes " + format_bytes(profile.context));
  }
  profile.memory = *memory;
  return profile;
}

fs::path profile_file(const std::string& gpu, const Installation& installation) {
  const std::vector<std::string> names = pretend::profile_names(installation.profiles());
  const auto known =
      std::find_if(names.begin(), names.end(), [&](const std::string& name) { return lower(name) == lower(gpu); });
  return fs::absolute(known == names.end() ? fs::path(gpu) : installation.profiles() / (*known + ".json"));
}

}  // namespace plimsoll::cli
