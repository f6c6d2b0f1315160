#pragma once

#include <string>

#include "plimsoll/report/report.h"
#include "plimsoll/report/text/amounts.h"
#include "plimsoll/report/text/step_rows.h"

/// The tables that the reports of all commands share.
namespace plimsoll::report {

/// The three books at their highest, beside the card, and what the device's consists of.
std::string books_table(const Peak& peak, Bytes card, const Amounts& amounts);

/// The peak by category, after an empty line and a heading with `when`; only the heading if no categories are known.
std::string peak_by_category(const Peak& peak, const std::string& when, const Amounts& amounts);

/// "step 1, backward, layers.31"
std::string peak_moment(const Peak& peak);

/// Peaks by step under a heading, after an empty line; "" without rows.
std::string step_table(const std::vector<StepRow>& rows, const Amounts& amounts);

}  // namespace plimsoll::report
