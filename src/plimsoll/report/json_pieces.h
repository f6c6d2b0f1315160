#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/report/json_form.h"
#include "plimsoll/report/run_report.h"

/// The pieces that the documents of all commands share: the same names for the same things.
namespace plimsoll::report {

// Ordered: a document's fields stand in the order in which they are written here.
using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text);

/// What flags write with hyphens, documents write with underscores.
std::string underscored(std::string name);

Json gpu_json(const Gpu& gpu);
Json peak_json(const AttributedPeak& peak);
Json device_parts_json(const DeviceParts& parts);
Json step_json(const StepPeaks& step);
Json modules_json(const std::vector<ModuleRow>& modules);
Json causes_json(const std::vector<PeakCause>& causes);
/// {"peak": {"categories", "module", "stage"}, "modules", "causes"}, as in the documents.
std::string to_json(const Attribution& attribution);

/// The document's text. Bytes that are not UTF-8 are replaced: they must not cost the whole of it.
std::string dumped(const Json& json, JsonForm form = JsonForm::kIndented);

}  // namespace plimsoll::report
