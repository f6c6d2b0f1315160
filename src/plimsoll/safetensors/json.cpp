#include "plimsoll/safetensors/json.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "plimsoll/base/errors.h"

namespace plimsoll::safetensors {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaximumDepth = 64;

/// Follows the path, and refuses repeated keys and deep nesting, which JSON allows.
class Events : public nlohmann::json_sax<Json> {
 public:
  explicit Events(JsonVisitor& visitor) : visitor_(visitor) {}

  bool null() override { return other("null"); }
  bool boolean(bool) override { return other("a truth value"); }
  bool number_integer(number_integer_t) override { return other("a negative number"); }
  bool number_unsigned(number_unsigned_t number) override {
    visitor_.number(path_, number);
    return true;
  }
  bool number_float(number_float_t, const string_t&) override {
    return other("a number that is not whole or too large");
  }
  bool string(string_t& text) override {
    visitor_.text(path_, text);
    return true;
  }
  bool binary(binary_t&) override { throw InternalError("JSON text has no binary values"); }

  bool start_object(std::size_t) override { return open(JsonVisitor::Kind::kObject, ""); }
  bool key(string_t& key) override {
    if (!keys_.back().insert(key).second) throw FormatError("the key " + shown(key) + " appears twice in one object");
    path_.back() = key;
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(JsonVisitor::Kind::kArray, "[]"); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw FormatError("its JSON is broken at byte " + std::to_string(position));
  }

 private:
  bool other(const char* what) {
    visitor_.other(path_, what);
    return true;
  }

  bool open(JsonVisitor::Kind kind, const char* element) {
    if (keys_.size() == kMaximumDepth) {
      throw FormatError("its JSON is nested deeper than " + std::to_string(kMaximumDepth) + " levels");
    }
    visitor_.open(path_, kind);
    keys_.emplace_back();
    path_.emplace_back(element);
    return true;
  }

  bool close() {
    keys_.pop_back();
    path_.pop_back();
    visitor_.close(path_);
    return true;
  }

  JsonVisitor& visitor_;
  JsonVisitor::Path path_;
  std::vector<std::unordered_set<std::string>> keys_;
};

}  // namespace

void read_json(std::string_view text, JsonVisitor& visitor) {
  // The parser would end at a zero byte and skip a byte order mark.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    throw FormatError("its JSON is broken at byte " + std::to_string(zero + 1));
  }
  if (text.starts_with("\xEF\xBB\xBF")) throw FormatError("its JSON is broken at byte 1");
  Events events(visitor);
  Json::sax_parse(text.begin(), text.end(), &events);
}

std::string json_string(std::string_view text) {
  try {
    return Json(text).dump();
  } catch (const Json::type_error&) {
    throw FormatError(shown(text) + " is not UTF-8");
  }
}

}  // namespace plimsoll::safetensors
