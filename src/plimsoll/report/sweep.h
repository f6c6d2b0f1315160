#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/report/plan_report.h"

/// Many jobs that differ in a few settings, side by side.
namespace plimsoll::report {

struct SweepRow {
  std::vector<std::string> values;  ///< One for each axis, as flags are written: "8", "full".
  std::optional<PlanReport> result;
  std::string error;  ///< Why there is no result.
};

struct Sweep {
  std::string model;
  Gpu gpu;
  std::vector<std::string> axes;  ///< Names of settings: "gpus", "checkpoint".
  std::vector<SweepRow> rows;

  /// Whether rows are of different cards; `gpu` is the first one's then.
  bool varies_card() const;
};

/// A table, and before it how many fit.
std::string to_text(const Sweep& sweep, const PlanTextOptions& options = {});

/// A line of titles and one for each row, lines ended by a line feed, quoted as RFC 4180 says; amounts in bytes.
std::string to_csv(const Sweep& sweep);

/// `{"version": 1, "command": "sweep", …}`; docs/json_schema.md.
std::string to_json(const Sweep& sweep, JsonForm form = JsonForm::kIndented);

}  // namespace plimsoll::report
