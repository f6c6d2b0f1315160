#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The little JSON that this layer reads and writes. The text is read value by value and never held as a tree, so that
/// a hostile one takes no more memory than its own length.

namespace plimsoll::safetensors {

/// Told of each value of a text, in order. A value's path is the keys that lead to it; an array's values have the
/// array's path and "[]". What a method throws ends the reading and reaches the caller of read_json.
class JsonVisitor {
 public:
  using Path = std::vector<std::string>;
  enum class Kind { kObject, kArray };

  virtual ~JsonVisitor() = default;
  virtual void open(const Path& path, Kind kind) = 0;
  virtual void close(const Path& path) = 0;
  virtual void text(const Path& path, std::string& text) = 0;
  virtual void number(const Path& path, std::uint64_t number) = 0;
  /// `what`: "null", "a truth value", "a negative number", "a number that is not whole or too large".
  virtual void other(const Path& path, const std::string& what) = 0;
};

/// Throws FormatError for a text that is not JSON in UTF-8 (it says at which byte), has a key twice in one object, or
/// is nested deeper than 64 levels.
void read_json(std::string_view text, JsonVisitor& visitor);

/// `text` in quotes, escaped as needed. Throws FormatError where it is not UTF-8.
std::string json_string(std::string_view text);

/// `name` for a message: in quotes, without control characters, long ones cut.
std::string shown(std::string_view name);

}  // namespace plimsoll::safetensors
