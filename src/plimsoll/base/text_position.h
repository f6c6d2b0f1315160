#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace plimsoll {

/// "line 1, column 25": the place of byte number `byte` (from 1) of `text`, for messages of parsers. Columns are bytes.
inline std::string line_and_column(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

}  // namespace plimsoll
