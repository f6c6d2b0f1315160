#pragma once

#include <string>

#include "plimsoll/report/report.h"
#include "plimsoll/report/text/options.h"

namespace plimsoll::report {

/// The report for a terminal. The verdict comes first, then the subject. The full report has at most 120 columns where
/// names allow: the three books, the peak by category, steps, modules, causes if wanted, lines of code and notes.
std::string to_text(const Report& report, const TextOptions& options = {});

}  // namespace plimsoll::report
