#include "plimsoll/report/json_value.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "plimsoll/base/errors.h"

namespace plimsoll::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kDeepest = 32;
// An ordered object searches its names one by one: time grows with the square of their number.
constexpr std::size_t kMostNames = 256;
constexpr std::size_t kMostValues = std::size_t{8} << 20;
constexpr auto kLargest = std::numeric_limits<std::int64_t>::max();

/// `value` for a message: short, and without control characters.
std::string found(const Json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  constexpr std::size_t kMost = 60;
  const std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

/// Looks only at brackets and commas. The parser checks the rest.
void refuse_hostile(std::string_view text, const std::string& origin) {
  if (text.size() > kMostDocumentBytes) {
    throw FormatError(fmt::format("{}: larger than {} MiB: no report is", origin, kMostDocumentBytes >> 20));
  }
  std::vector<std::size_t> commas;  // of each open bracket
  std::size_t values = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') {
      if (commas.size() == kDeepest) {
        throw FormatError(fmt::format("{}: nested deeper than {} levels: no report is", origin, kDeepest));
      }
      // Only objects have a limit.
      commas.push_back(c == '{' ? 1 : 0);
      ++values;
    }
    if ((c == '}' || c == ']') && !commas.empty()) commas.pop_back();
    if (c != ',') continue;
    ++values;
    if (!commas.empty() && commas.back() > 0 && ++commas.back() > kMostNames) {
      throw FormatError(fmt::format("{}: an object has more than {} fields: no report's has", origin, kMostNames));
    }
  }
  if (values > kMostValues) {
    throw FormatError(fmt::format("{}: more than {} values: no report has as many", origin, kMostValues));
  }
}

}  // namespace

Json parse_document(std::string_view text, const std::string& origin) {
  refuse_hostile(text, origin);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw FormatError(origin + ": not JSON: it goes wrong at byte " + std::to_string(error.byte));
  } catch (const Json::out_of_range&) {
    throw FormatError(origin + ": not JSON that can be read: a number is beyond what a double holds");
  }
}

std::string JsonValue::path() const {
  if (parent_ == nullptr) return "";
  const std::string above = parent_->path();
  return above + (above.empty() || name_.starts_with("[") ? "" : ".") + name_;
}

void JsonValue::fail(const std::string& what) const {
  const JsonValue* document = this;
  while (document->parent_ != nullptr) document = document->parent_;
  const std::string field = path();
  const std::string subject = field.empty() ? "the document" : "field '" + field + "'";
  throw FormatError(fmt::format("{}: {} {}", document->name_, subject, what));
}

void JsonValue::mismatch(const std::string& expected) const {
  fail("must be " + expected + ", found " + found(*json_));
}

bool JsonValue::is_null() const { return json_->is_null(); }

std::int64_t JsonValue::integer() const {
  // A number beyond 63 bits is kept as an unsigned one.
  if (!json_->is_number_integer() ||
      (json_->is_number_unsigned() && json_->get<std::uint64_t>() > std::uint64_t{kLargest})) {
    mismatch("a whole number of at most 63 bits");
  }
  return json_->get<std::int64_t>();
}

Bytes JsonValue::whole() const {
  if (!json_->is_number_unsigned() || json_->get<std::uint64_t>() > std::uint64_t{kLargest}) {
    mismatch("a whole number from 0 to " + std::to_string(kLargest));
  }
  return json_->get<std::uint64_t>();
}

double JsonValue::number() const {
  if (!json_->is_number()) mismatch("a number");
  return json_->get<double>();
}

bool JsonValue::flag() const {
  if (!json_->is_boolean()) mismatch("true or false");
  return json_->get<bool>();
}

std::string JsonValue::text() const {
  if (!json_->is_string()) mismatch("text");
  return json_->get<std::string>();
}

const JsonValue::Json& JsonValue::object() const {
  if (!json_->is_object()) mismatch("an object");
  return *json_;
}

std::optional<JsonValue> JsonValue::find(const char* name) const {
  const auto found = object().find(name);
  if (found == json_->end()) return std::nullopt;
  return JsonValue(*found, this, name);
}

JsonValue JsonValue::operator[](const char* name) const {
  const auto found = object().find(name);
  static const Json kNothing;
  if (found == json_->end()) JsonValue(kNothing, this, name).fail("is missing");
  return {*found, this, name};
}

std::vector<std::string> JsonValue::names() const {
  std::vector<std::string> all;
  for (const auto& [name, value] : object().items()) all.push_back(name);
  return all;
}

std::size_t JsonValue::length() const {
  if (!json_->is_array()) mismatch("a list");
  return json_->size();
}

JsonValue JsonValue::element(std::size_t index) const {
  return {(*json_)[index], this, "[" + std::to_string(index) + "]"};
}

}  // namespace plimsoll::report
