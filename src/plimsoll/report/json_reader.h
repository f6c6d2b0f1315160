#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/report/run_report.h"

/// Reading documents that others may have written. Whatever is wrong with one is a FormatError that names where it is
/// from, the field, what was expected and what was found.
namespace plimsoll::report {

/// Larger documents are none of ours.
inline constexpr std::size_t kMostDocumentBytes = std::size_t{64} << 20;

/// The JSON in `text`. Refused before it is built: what is too long, nested too deep, or has more values than memory
/// and time allow for.
nlohmann::ordered_json parse_document(std::string_view text, const std::string& origin);

/// An object of a document and the way to it. Numbers of bytes end at 2^63 - 1, so that differences of any two have a
/// sign. REQUIRES: the JSON and the parent outlive it.
class Fields {
 public:
  using Json = nlohmann::ordered_json;

  /// The document itself. Throws where it is no object.
  Fields(const Json& document, const std::string& origin);

  /// Throws: `name` `what`. An empty name is this object.
  [[noreturn]] void fail(std::string_view name, const std::string& what) const;
  /// Throws: `name` must be `expected`, and is not.
  [[noreturn]] void mismatch(std::string_view name, const std::string& expected, const Json& found) const;

  bool has(const char* name) const;
  bool is_null(const char* name) const;
  const Json& value(const char* name) const;

  Bytes whole(const char* name) const;
  std::int64_t integer(const char* name) const;
  double number(const char* name) const;
  bool flag(const char* name) const;
  std::string text(const char* name) const;
  std::optional<std::int64_t> integer_or_null(const char* name) const;
  std::string text_or_null(const char* name) const;  ///< "" for null.
  std::vector<std::string> texts(const char* name) const;

  Fields object(const char* name) const;
  /// Calls `use(name, fields)` for each value of the object `name`, which must be objects too.
  template <typename Use>
  void each_named(const char* name, const Use& use) const {
    const Fields object = this->object(name);
    for (const std::string& key : object.names()) use(key, object.object(key.c_str()));
  }
  /// Calls `use(fields)` for each element of the list `name`, which must be objects.
  template <typename Use>
  void each(const char* name, const Use& use) const {
    const std::size_t length = list(name);
    for (std::size_t i = 0; i < length; ++i) use(element(name, i));
  }
  std::vector<std::string> names() const;

 private:
  Fields(const Json& object, const Fields* parent, std::string name);
  std::size_t list(const char* name) const;
  Fields element(const char* name, std::size_t index) const;
  std::string path() const;

  const Json* object_;
  const Fields* parent_ = nullptr;
  std::string name_;  ///< Of the document: where it is from.
};

/// Refuses another version than this one.
void check_version(const Fields& document);

Gpu read_gpu(const Fields& fields);
/// The books alone, for documents in which nobody looked whose the memory was.
Peak read_peak(const Fields& fields);
AttributedPeak read_attributed_peak(const Fields& fields);
std::vector<CategoryBytes> read_categories(const Fields& fields);  ///< Of an object: each name with its bytes.
StepPeaks read_step(const Fields& fields);
std::vector<ModuleRow> read_modules(const Fields& document);  ///< Its field `modules`.
std::vector<PeakCause> read_causes(const Fields& document);   ///< Its field `causes`.

}  // namespace plimsoll::report
