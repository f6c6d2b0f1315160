#pragma once

#include <string>

#include "plimsoll/report/report.h"
#include "plimsoll/report/text/options.h"

namespace plimsoll::report {

/// The report in at most 20 lines of 80 columns: the verdict, the subject, a bar for each part of the card, and the
/// place of the peak. REQUIRES: the subject used a GPU.
std::string short_text(const Report& report, const TextOptions& options);

}  // namespace plimsoll::report
