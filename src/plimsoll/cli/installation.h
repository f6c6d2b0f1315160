#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/model/profile.h"

namespace plimsoll::cli {

/// How the parts of plimsoll are installed.
enum class Layout {
  kSources,  ///< The project's folder, with the build in it.
  kPackage,  ///< The installed Python package, with the command in bin/; it has no sources.
};

/// The places of the parts of plimsoll on this machine.
struct Installation {
  std::filesystem::path home;           ///< The folder of the project or of the installed package.
  std::filesystem::path binary_folder;  ///< Of the plimsoll command.
  Layout layout = Layout::kSources;
  std::filesystem::path package_python{};  ///< PLIMSOLL_PYTHON: the interpreter that the package is installed for

  bool is_package() const { return layout == Layout::kPackage; }
  std::filesystem::path profiles() const {
    return home / (is_package() ? "profiles" : "src/plimsoll/pretend/profiles");
  }
  std::filesystem::path runner() const {
    return home / (is_package() ? "run/__main__.py" : "python/plimsoll/run/__main__.py");
  }
  /// Empty in a package if PLIMSOLL_PYTHON is not set.
  std::filesystem::path own_python() const {
    return is_package() ? package_python : home / ".plimsoll/venv/bin/python";
  }
  /// Beside the folder of the command (bin/); in a build tree also beside the command.
  std::filesystem::path own_libraries() const;
};

/// The installation of this process.
Installation find_installation();

/// The installation of a command in `binary_folder`, at the first of these that exists: the sources in `named_home`
/// (PLIMSOLL_HOME), the package of the command. Otherwise `named_home`, or the sources from which the command was
/// built. `named_home` and `package_python` may be empty.
Installation find_installation(const std::filesystem::path& binary_folder, const std::filesystem::path& named_home,
                               const std::filesystem::path& package_python);

/// "MAJOR.MINOR.PATCH".
std::string version();

/// A Python interpreter, and the pretend libraries for its torch.
struct Interpreter {
  std::filesystem::path python;
  std::filesystem::path library_folder;
  std::vector<std::filesystem::path> libraries;  ///< To preload, libcuda.so.1 first.
};

/// The interpreter that `python` (--python) names, otherwise plimsoll's own.
/// Throws InvalidArgument if the interpreter does not exist, its torch is not a CUDA build or not supported, or the
/// libraries are missing. A package has libraries for one torch, so it refuses every other interpreter.
Interpreter find_interpreter(const std::optional<std::string>& python, const Installation& installation);

/// Every lib*.so.* in `folder`, sorted, with libcuda.so.1 first.
std::vector<std::filesystem::path> face_libraries(const std::filesystem::path& folder);

/// Whether `file` is an executable file.
bool is_program(const std::filesystem::path& file);

/// The program with this path, or the first with this name in the folders of `path` (the variable PATH).
/// Throws InvalidArgument if there is none.
std::filesystem::path find_program(const std::string& program, const std::string& path);

/// The profile that --gpu names, from `installation` or a file, with the memory of --gpu-memory if that is given.
/// Throws InvalidArgument with the nearest names for an unknown GPU, and for less memory than a process's context
/// needs; FormatError for a file that is not a profile.
pretend::Profile profile_for(const std::string& gpu, std::optional<Bytes> memory, const Installation& installation);

/// The file of that profile. REQUIRES: profile_for(gpu, …) does not throw.
std::filesystem::path profile_file(const std::string& gpu, const Installation& installation);

}  // namespace plimsoll::cli
