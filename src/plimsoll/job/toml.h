#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// TOML 1.0, read into a tree of values.
namespace plimsoll::job::toml {

/// A larger file is no configuration.
inline constexpr std::size_t kMostBytes = std::size_t{1} << 20;
/// Of tables and arrays in each other.
inline constexpr int kDeepest = 32;

struct Value;
using Table = std::map<std::string, std::unique_ptr<Value>, std::less<>>;

struct Value {
  enum class Kind : std::uint8_t { kString, kInteger, kFloat, kBoolean, kDate, kArray, kTable };
  /// How a table or an array came to be, which decides whether more may be added to it.
  enum class Made : std::uint8_t {
    kAtOnce,     ///< As a value: nothing may be added.
    kByHeader,   ///< [a.b], or an element of [[a.b]].
    kOnTheWay,   ///< As `a` in [a.b].
    kByDots,     ///< As `a` in `a.b = 1`.
    kByHeaders,  ///< The array of [[a.b]].
  };

  Kind kind = Kind::kTable;
  int line = 0;  ///< Where it stands, the first line being 1.
  Made made = Made::kAtOnce;
  std::string text = {};  ///< Of a string, and of a date as it was written.
  std::int64_t integer = 0;
  double real = 0;
  bool boolean = false;
  std::vector<Value> array = {};
  Table table = {};

  /// Null where the table has no such key. REQUIRES: a table.
  const Value* find(std::string_view key) const;
};

/// "a table", "a whole number", …
const char* name(Value::Kind kind);

/// Reads a text into its root table. Dates and times are kept as text, checked for their form only.
/// Throws FormatError that begins with `origin:line:` for a text that is not TOML 1.0, is longer than kMostBytes, or
/// nests deeper than kDeepest.
Value parse(std::string_view text, const std::string& origin);

/// Throws InvalidArgument for a file that cannot be read, FormatError as parse.
Value parse_file(const std::filesystem::path& path);

}  // namespace plimsoll::job::toml
