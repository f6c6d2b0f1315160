#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/bytes.h"

/// Reads JSON that others may have written. Each defect is a FormatError that names the origin, the field, what was
/// expected and what was found.
namespace plimsoll::report {

/// No report is larger.
inline constexpr std::size_t kMostDocumentBytes = std::size_t{64} << 20;

/// The JSON in `text`. Refuses text that is too long, nested too deep, or has more values than memory and time allow,
/// before it is built.
nlohmann::ordered_json parse_document(std::string_view text, const std::string& origin);

/// A value of a document and the path to it. Numbers of bytes end at 2^63 - 1, so that the difference of two has a
/// sign. REQUIRES: the JSON and the parent outlive it.
class JsonValue {
 public:
  using Json = nlohmann::ordered_json;

  /// The document itself. `origin` names it in errors.
  JsonValue(const Json& document, std::string origin) : json_(&document), name_(std::move(origin)) {}

  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void mismatch(const std::string& expected) const;

  const Json& json() const { return *json_; }
  bool is_null() const;

  Bytes whole() const;
  std::int64_t integer() const;
  double number() const;
  bool flag() const;
  std::string text() const;

  /// The field of an object, if the object has it.
  std::optional<JsonValue> find(const char* name) const;
  /// The field of an object, which must have it.
  JsonValue operator[](const char* name) const;
  std::vector<std::string> names() const;

  /// Elements of a list.
  std::size_t length() const;
  JsonValue element(std::size_t index) const;

 private:
  JsonValue(const Json& json, const JsonValue* parent, std::string name)
      : json_(&json), parent_(parent), name_(std::move(name)) {}
  const Json& object() const;
  std::string path() const;

  const Json* json_;
  const JsonValue* parent_ = nullptr;
  std::string name_;  ///< For the document: its origin.
};

}  // namespace plimsoll::report
