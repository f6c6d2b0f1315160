#include "plimsoll/report/json_reader.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "plimsoll/base/errors.h"

namespace plimsoll::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kDeepest = 32;
// An ordered object finds its names one after the other, so many of them would take time in their square.
constexpr std::size_t kMostNames = 256;
constexpr std::size_t kMostValues = std::size_t{8} << 20;
constexpr auto kLargest = std::numeric_limits<std::int64_t>::max();

/// `value` for a message: short, and without what a terminal would take for orders.
std::string found(const Json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  constexpr std::size_t kMost = 60;
  const std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

/// Looks at brackets and commas only: whether the rest is JSON is the parser's to say.
void refuse_hostile(std::string_view text, const std::string& origin) {
  if (text.size() > kMostDocumentBytes) {
    throw FormatError(origin + ": larger than " + std::to_string(kMostDocumentBytes >> 20) + " MiB: no report is");
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
        throw FormatError(origin + ": nested deeper than " + std::to_string(kDeepest) + " levels: no report is");
      }
      // A list may be as long as it likes.
      commas.push_back(c == '{' ? 1 : 0);
      ++values;
    }
    if ((c == '}' || c == ']') && !commas.empty()) commas.pop_back();
    if (c != ',') continue;
    ++values;
    if (!commas.empty() && commas.back() > 0 && ++commas.back() > kMostNames) {
      throw FormatError(origin + ": an object has more than " + std::to_string(kMostNames) +
                        " fields: no report's has");
    }
  }
  if (values > kMostValues) {
    throw FormatError(origin + ": more than " + std::to_string(kMostValues) + " values: no report has as many");
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

Fields::Fields(const Json& document, const std::string& origin) : Fields(document, nullptr, origin) {}

Fields::Fields(const Json& object, const Fields* parent, std::string name)
    : object_(&object), parent_(parent), name_(std::move(name)) {
  if (!object.is_object()) mismatch("", "an object", object);
}

std::string Fields::path() const {
  if (parent_ == nullptr) return "";
  const std::string above = parent_->path();
  return above.empty() ? name_ : above + "." + name_;
}

void Fields::fail(std::string_view name, const std::string& what) const {
  const Fields* document = this;
  while (document->parent_ != nullptr) document = document->parent_;
  std::string field = path();
  if (!name.empty()) field += (field.empty() ? "" : ".") + std::string(name);
  throw FormatError(document->name_ + ": " + (field.empty() ? "the document" : "field '" + field + "'") + " " + what);
}

void Fields::mismatch(std::string_view name, const std::string& expected, const Json& value) const {
  fail(name, "must be " + expected + ", found " + found(value));
}

bool Fields::has(const char* name) const { return object_->contains(name); }
bool Fields::is_null(const char* name) const { return value(name).is_null(); }

const Json& Fields::value(const char* name) const {
  const auto found = object_->find(name);
  if (found == object_->end()) fail(name, "is missing");
  return *found;
}

std::int64_t Fields::integer(const char* name) const {
  const Json& json = value(name);
  // A number beyond 63 bits is kept as an unsigned one.
  if (!json.is_number_integer() || (json.is_number_unsigned() && json.get<std::uint64_t>() > std::uint64_t{kLargest})) {
    mismatch(name, "a whole number of at most 63 bits", json);
  }
  return json.get<std::int64_t>();
}

Bytes Fields::whole(const char* name) const {
  const Json& json = value(name);
  if (!json.is_number_unsigned() || json.get<std::uint64_t>() > std::uint64_t{kLargest}) {
    mismatch(name, "a whole number from 0 to " + std::to_string(kLargest), json);
  }
  return json.get<std::uint64_t>();
}

double Fields::number(const char* name) const {
  const Json& json = value(name);
  if (!json.is_number()) mismatch(name, "a number", json);
  return json.get<double>();
}

bool Fields::flag(const char* name) const {
  const Json& json = value(name);
  if (!json.is_boolean()) mismatch(name, "true or false", json);
  return json.get<bool>();
}

std::string Fields::text(const char* name) const {
  const Json& json = value(name);
  if (!json.is_string()) mismatch(name, "text", json);
  return json.get<std::string>();
}

std::optional<std::int64_t> Fields::integer_or_null(const char* name) const {
  return is_null(name) ? std::nullopt : std::optional(integer(name));
}

std::string Fields::text_or_null(const char* name) const { return is_null(name) ? "" : text(name); }

std::vector<std::string> Fields::texts(const char* name) const {
  std::vector<std::string> all;
  const std::size_t length = list(name);
  for (std::size_t i = 0; i < length; ++i) {
    const Json& json = value(name)[i];
    if (!json.is_string()) mismatch(std::string(name) + "[" + std::to_string(i) + "]", "text", json);
    all.push_back(json.get<std::string>());
  }
  return all;
}

Fields Fields::object(const char* name) const { return {value(name), this, name}; }

std::vector<std::string> Fields::names() const {
  std::vector<std::string> all;
  for (const auto& [name, value] : object_->items()) all.push_back(name);
  return all;
}

std::size_t Fields::list(const char* name) const {
  const Json& json = value(name);
  if (!json.is_array()) mismatch(name, "a list", json);
  return json.size();
}

Fields Fields::element(const char* name, std::size_t index) const {
  return {value(name)[index], this, std::string(name) + "[" + std::to_string(index) + "]"};
}

void check_version(const Fields& document) {
  if (document.integer("version") != 1) {
    document.mismatch("version", "1, the only one that this plimsoll reads", document.value("version"));
  }
}

}  // namespace plimsoll::report
