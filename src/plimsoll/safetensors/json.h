#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/text.h"

/// The JSON of this layer. The text is read value by value, without a tree: a hostile text takes no more memory than
/// its length.

namespace plimsoll::safetensors {

/// Receives each value of a text, in order. The path of a value is the list of its keys; values of an array have the
/// array's path and "[]". An exception of a method ends the reading and reaches the caller of read_json.
class JsonVisitor {
 public:
  using Path = std::vector<std::string>;
  enum class Kind { kObject, kArray };

  virtual ~JsonVisitor() = default;
  virtual void open(const Path& path, Kind kind) = 0;
  virtual void close(const Path&) {}
  virtual void text(const Path& path, std::string& text) = 0;
  virtual void number(const Path& path, std::uint64_t number) = 0;
  /// `what`: "null", "a truth value", "a negative number", "a number that is not whole or too large".
  virtual void other(const Path& path, const std::string& what) = 0;
};

/// Throws FormatError for a text that is not JSON in UTF-8 (with the byte), that repeats a key in one object, or that
/// nests deeper than 64 levels.
void read_json(std::string_view text, JsonVisitor& visitor);

/// `text` in quotes, with escapes. Throws FormatError if it is not UTF-8.
std::string json_string(std::string_view text);

/// `name` for a message.
inline std::string shown(std::string_view name) { return in_quotes(name, 120); }

}  // namespace plimsoll::safetensors
