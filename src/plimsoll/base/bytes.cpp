#include "plimsoll/base/bytes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "plimsoll/base/errors.h"
#include "plimsoll/base/text.h"

namespace plimsoll {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};

constexpr std::array<Unit, 10> kUnits{{{"", 1.0},
                                       {"B", 1.0},
                                       {"KiB", 1024.0},
                                       {"MiB", 1048576.0},
                                       {"GiB", 1073741824.0},
                                       {"TiB", 1099511627776.0},
                                       {"kB", 1e3},
                                       {"MB", 1e6},
                                       {"GB", 1e9},
                                       {"TB", 1e12}}};

constexpr std::array<const char*, 5> kNames{"B", "KiB", "MiB", "GiB", "TiB"};

/// `value` in the unit with this index.
std::string format(double value, std::size_t unit) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.2f %s", value, kNames[unit]);
  return text.data();
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::string format_bytes(Bytes bytes) {
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kNames.size()) {
    value /= 1024.0;
    ++unit;
  }
  return format(value, unit);
}

std::string format_bytes(Bytes bytes, ByteUnit unit) {
  return format(static_cast<double>(bytes) / static_cast<double>(bytes_of(unit)), static_cast<std::size_t>(unit));
}

ByteUnit parse_byte_unit(std::string_view text) {
  for (const ByteUnit unit : {ByteUnit::kB, ByteUnit::kKiB, ByteUnit::kMiB, ByteUnit::kGiB}) {
    if (lower(text) == lower(kNames[static_cast<std::size_t>(unit)])) return unit;
  }
  throw InvalidArgument("'" + std::string(text) + "' is not a unit of memory: write B, KiB, MiB or GiB");
}

Bytes parse_bytes(std::string_view text) {
  const std::string_view trimmed = trim(text);
  double number = 0;
  const auto [end, error] = std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), number);
  if (error == std::errc() && number >= 0 && std::isfinite(number)) {
    const std::string_view suffix = trim(trimmed.substr(static_cast<std::size_t>(end - trimmed.data())));
    for (const Unit& unit : kUnits) {
      const double bytes = number * unit.bytes;
      if (suffix == unit.name && bytes < 9.2e18) return static_cast<Bytes>(std::llround(bytes));
    }
  }
  throw InvalidArgument("'" + std::string(text) +
                        "' is not an amount of memory: write a number and a unit, as in 80GiB, 24GB or 1073741824");
}

}  // namespace plimsoll
