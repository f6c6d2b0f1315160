#pragma once

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "plimsoll/base/errors.h"

namespace plimsoll::job {

/// What `action` complains of, as an InvalidArgument or a FormatError.
template <class Error, class Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no complaint";
}

/// A folder that is gone with the test.
struct TemporaryFolder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("plimsoll_job_" + std::to_string(std::random_device()()));
  TemporaryFolder() { std::filesystem::create_directories(path); }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << text;
    return path / name;
  }
};

}  // namespace plimsoll::job
