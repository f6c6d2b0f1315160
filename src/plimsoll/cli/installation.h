#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll::cli {

/// How they lie there.
enum class Layout {
  kSources,  ///< the project's folder, built in it
  kPackage,  ///< the installed Python package: the command in bin/, and with it all that it needs but the sources
};

/// Where the parts of plimsoll lie on this machine.
struct Installation {
  std::filesystem::path home;           ///< the project's folder, or that of the installed package
  std::filesystem::path binary_folder;  ///< of the plimsoll command
  Layout layout = Layout::kSources;
  std::filesystem::path package_python{};  ///< PLIMSOLL_PYTHON: the interpreter that the package is installed for

  bool is_package() const { return layout == Layout::kPackage; }
  std::filesystem::path profiles() const {
    return home / (is_package() ? "profiles" : "src/plimsoll/pretend/profiles");
  }
  std::filesystem::path runner() const {
    return home / (is_package() ? "run/__main__.py" : "python/plimsoll/run/__main__.py");
  }
  /// Empty in a package that was not told.
  std::filesystem::path own_python() const {
    return is_package() ? package_python : home / ".plimsoll/venv/bin/python";
  }
  /// In a package beside the command's folder; else beside the command, or beside its folder where that is called bin.
  std::filesystem::path own_libraries() const;
};

/// That of this process.
Installation find_installation();

/// That of a command in `binary_folder`: `named_home` (PLIMSOLL_HOME, may be empty) where it has the sources, else the
/// package that the command is part of, else `named_home` or where it was built. `package_python` may be empty.
Installation find_installation(const std::filesystem::path& binary_folder, const std::filesystem::path& named_home,
                               const std::filesystem::path& package_python);

/// "MAJOR.MINOR.PATCH".
std::string version();

/// A Python and the pretend libraries that fit its torch.
struct Interpreter {
  std::filesystem::path python;
  std::filesystem::path library_folder;
  std::vector<std::filesystem::path> libraries;  ///< to preload, libcuda.so.1 first
};

/// The interpreter that `python` (--python) names, otherwise plimsoll's own.
/// Throws InvalidArgument that says what is missing and what to do: no such interpreter, a torch that is not a CUDA
/// build or of an unknown version, no libraries; in a package, whose libraries fit one torch, any other interpreter.
Interpreter find_interpreter(const std::optional<std::string>& python, const Installation& installation);

/// Every lib*.so.* in `folder`, sorted, libcuda.so.1 first: what a program that uses CUDA could ask the loader for.
std::vector<std::filesystem::path> face_libraries(const std::filesystem::path& folder);

/// A file that may be run.
bool is_program(const std::filesystem::path& file);

/// `program` itself where it is a path to a program, else the first such program on `path` (as the variable PATH).
/// Throws InvalidArgument where there is none.
std::filesystem::path find_program(const std::string& program, const std::string& path);

}  // namespace plimsoll::cli
