#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plimsoll/cli/options.h"

namespace plimsoll::cli {

/// Where the parts of plimsoll lie on this machine.
struct Installation {
  std::filesystem::path home;           ///< the project's folder: PLIMSOLL_HOME, else where it was built
  std::filesystem::path binary_folder;  ///< of the plimsoll command

  std::filesystem::path profiles() const { return home / "src/plimsoll/pretend/profiles"; }
  std::filesystem::path runner() const { return home / "python/plimsoll/run/__main__.py"; }
  std::filesystem::path own_python() const { return home / ".plimsoll/venv/bin/python"; }
  /// Beside the command, or beside its folder where that is called bin.
  std::filesystem::path own_libraries() const;
};

/// That of this process.
Installation find_installation();

/// "plimsoll 0.1.0" without the name.
std::string version();

/// A Python and the pretend libraries that fit its torch.
struct Interpreter {
  std::filesystem::path python;
  std::filesystem::path library_folder;
  std::vector<std::filesystem::path> libraries;  ///< to preload, libcuda.so.1 first
};

/// The interpreter that was asked for with --python, or plimsoll's own.
/// Throws InvalidArgument that says what is missing and what to do: no such interpreter, a torch that is not a CUDA
/// build or of an unknown version, no libraries.
Interpreter find_interpreter(const RunOptions& options, const Installation& installation);

/// Every lib*.so.* in `folder`, sorted, libcuda.so.1 first: what a program that uses CUDA could ask the loader for.
std::vector<std::filesystem::path> face_libraries(const std::filesystem::path& folder);

/// `program` itself where it is a path to a program, else the first such program on `path` (as the variable PATH).
/// Throws InvalidArgument where there is none.
std::filesystem::path find_program(const std::string& program, const std::string& path);

}  // namespace plimsoll::cli
