#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"

/// A folder for one test, in memory if the system has /dev/shm, so that tests do not wait for a disk.
struct Scratch {
  std::filesystem::path path;

  Scratch() {
    const std::filesystem::path memory = "/dev/shm";
    const bool usable = access(memory.c_str(), W_OK) == 0;
    std::string name = ((usable ? memory : std::filesystem::temp_directory_path()) / "plimsoll-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    path = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }

  std::vector<std::string> names() const { return names_in(path); }

  static std::vector<std::string> names_in(const std::filesystem::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
};

/// Bytes that count up from `first`.
inline std::vector<std::byte> counting(plimsoll::Bytes bytes, unsigned first, unsigned modulus = 256) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>((first + i) % modulus);
  return data;
}

inline std::string contents(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}
