#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/report/report.h"
#include "plimsoll/report/text/options.h"

namespace plimsoll::report {

/// One change to a job, and its result.
struct Saving {
  std::string change;            ///< As the user writes it: "--checkpoint full".
  std::optional<Report> result;  ///< Of the changed job.
  std::string failure;           ///< Why there is no result.
};

/// The document of `plimsoll explain`.
struct Explanation {
  Report report;
  std::vector<Saving> changes;
};

/// The peak cause by cause, and the memory that each single change saves on the device book, the largest saving first.
/// A line below names the changes that save nothing.
std::string explanation_text(const Report& report, const std::vector<Saving>& savings, const TextOptions& options = {});

}  // namespace plimsoll::report
