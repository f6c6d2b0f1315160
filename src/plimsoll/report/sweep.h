#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/report/report.h"
#include "plimsoll/report/text/options.h"

/// Many jobs that differ in a few settings, side by side.
namespace plimsoll::report {

struct SweepRow {
  std::vector<std::string> values;  ///< One for each axis, as flags are written: "8", "full".
  std::optional<Report> result;
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
std::string to_text(const Sweep& sweep, const TextOptions& options = {});

/// A row as the document and the CSV have it.
struct SweepLine {
  JobValues job;                   ///< The values of the axes: numbers, true and false have their type.
  const Report* result = nullptr;  ///< Null if the job could not be run.
  std::string error = {};
};

std::vector<SweepLine> lines_of(const Sweep& sweep);
std::vector<std::string> axes_of(const Sweep& sweep);  ///< With underscores.

}  // namespace plimsoll::report
