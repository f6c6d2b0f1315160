#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/errors.h"
#include "plimsoll/job/fields.h"

/// TOML 1.0, read by toml++ into a tree of values with their lines. Only toml.cpp includes toml++, whose headers are
/// large.
namespace plimsoll::job::toml {

/// The largest size of a file.
inline constexpr std::size_t kMostBytes = std::size_t{1} << 20;
/// The deepest nesting of tables and arrays.
inline constexpr int kDeepest = 32;

struct Value;
using Table = std::map<std::string, std::unique_ptr<Value>, std::less<>>;

struct Value {
  enum class Kind : std::uint8_t { kString, kInteger, kFloat, kBoolean, kDate, kArray, kTable };

  Kind kind = Kind::kTable;
  int line = 0;  ///< The first line of a file is 1.
  std::string text = {};
  std::int64_t integer = 0;
  double real = 0;
  bool boolean = false;
  std::vector<Value> array = {};
  Table table = {};

  /// Null if the table does not have the key. REQUIRES: a table.
  const Value* find(std::string_view key) const;
};

/// "a table", "a whole number", …
const char* name(Value::Kind kind);

/// Reads a text into its root table. A date or time keeps its kind only.
/// Throws FormatError that begins with `origin:line:` for a text that is not TOML 1.0, is longer than kMostBytes, or
/// nests deeper than kDeepest.
Value parse(std::string_view text, const std::string& origin);

/// Throws InvalidArgument for a file that cannot be read, FormatError as parse.
Value parse_file(const std::filesystem::path& path);

}  // namespace plimsoll::job::toml

namespace plimsoll::job {

/// A TOML value as the value of a field. Throws InvalidArgument that names `key` for a table, an array and a date.
inline Value plain_value(const std::string& key, const toml::Value& value) {
  switch (value.kind) {
    case toml::Value::Kind::kString:
      return value.text;
    case toml::Value::Kind::kInteger:
      return value.integer;
    case toml::Value::Kind::kFloat:
      return value.real;
    case toml::Value::Kind::kBoolean:
      return value.boolean;
    default:
      throw InvalidArgument("'" + key + "' must be a text, a number, true or false, found " + toml::name(value.kind));
  }
}

/// Runs `action`. An InvalidArgument becomes a FormatError that begins with the file and the line of `value`.
template <class Action>
void at_line(const std::string& origin, const toml::Value& value, Action action) {
  try {
    action();
  } catch (const InvalidArgument& error) {
    throw FormatError(origin + ":" + std::to_string(value.line) + ": " + error.what());
  }
}

}  // namespace plimsoll::job
