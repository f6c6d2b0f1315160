#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "plimsoll/report/comparison.h"
#include "plimsoll/report/fit.h"
#include "plimsoll/report/json_value.h"
#include "plimsoll/report/report.h"
#include "plimsoll/report/sweep.h"
#include "plimsoll/report/text/sections.h"

/// The JSON documents of all commands, and their schema. fields.h has the fields; docs/json_schema.md explains them.
namespace plimsoll::report {

/// The layout of a document. It ends with a line feed.
enum class JsonForm : std::uint8_t {
  kIndented,
  kOneLine,  ///< For a stream of documents.
};

// Bytes that are not UTF-8 are replaced.
std::string to_json(const Report& report, JsonForm form = JsonForm::kIndented);
std::string to_json(const Sweep& sweep, JsonForm form = JsonForm::kIndented);
std::string to_json(const Fit& fit, JsonForm form = JsonForm::kIndented);
std::string to_json(const Comparison& comparison, JsonForm form = JsonForm::kIndented);
std::string to_json(const Explanation& explanation, JsonForm form = JsonForm::kIndented);

/// {"peak": {"categories", "module", "stage"}, "modules", "causes"}, as in a report, on one line.
std::string to_json(const Attribution& attribution);

/// The rows of the sweep as CSV (RFC 4180) under a line of titles, which are the names of the document.
std::string to_csv(const Sweep& sweep);

enum class ReadMode : std::uint8_t {
  kStrict,   ///< Every field must be there.
  kLenient,  ///< A field that is missing or null keeps its default. A wrong type is an error in both modes.
};

/// Reads a document of `plan` or `run`, of version 1 too. Unknown fields are ignored, because a version may add fields.
/// The verdict is computed again, and must agree with the document.
/// Throws FormatError that names the origin, the field, what was expected and what was found.
Report report_from_json(std::string_view text, const std::string& origin);

/// Reads the report that a child of `run` leaves, without its verdict; the parent adds what it knows.
Report report_record_from(const JsonValue& document);

/// The report in a larger document, for the planner's protocol.
nlohmann::ordered_json json_of_report(const Report& report);
Report report_from(const JsonValue& document);

/// The JSON Schema (draft 2020-12) of the documents of all commands.
std::string document_schema();

}  // namespace plimsoll::report
