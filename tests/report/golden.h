#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

/// Compares `text` with a file. With PLIMSOLL_REGENERATE=1 in the environment it writes the file instead; read the
/// difference before you commit it.
inline void check_golden_file(const std::filesystem::path& file, const std::string& text) {
  const char* regenerate = std::getenv("PLIMSOLL_REGENERATE");
  if (regenerate != nullptr && std::string(regenerate) == "1") {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return;
  }
  std::ostringstream expected;
  expected << std::ifstream(file, std::ios::binary).rdbuf();
  INFO("golden file ", file.string(), "; PLIMSOLL_REGENERATE=1 writes it again");
  CHECK(text == expected.str());
}

/// Compares `text` with tests/report/golden/<name>.
inline void check_golden(const std::string& name, const std::string& text) {
  check_golden_file(std::filesystem::path(PLIMSOLL_SOURCE_DIR) / "tests/report/golden" / name, text);
}
