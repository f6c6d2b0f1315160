#pragma once

#include <string>

#include "plimsoll/report/run_report.h"
#include "plimsoll/report/text/amounts.h"
#include "plimsoll/report/text/step_rows.h"

/// The tables that the reports of all commands share.
namespace plimsoll::report {

/// The three books at their highest, beside the card, and what the device's consists of.
std::string books_table(const Peak& peak, Bytes card, const Amounts& amounts);

/// "step 1, backward, module layers.31 (pre-backward)". `without_module` stands in the module's place where there is
/// none and a model was at work.
std::string peak_moment_in_full(const AttributedPeak& peak, const std::string& without_module);

/// What was there at the peak by category, after an empty line and a heading with `when`; without categories that
/// heading alone.
std::string peak_by_category(const AttributedPeak& peak, const std::string& when, const Amounts& amounts);

/// Peaks by step under a heading, after an empty line; "" without rows.
std::string step_table(const std::vector<StepRow>& rows, const Amounts& amounts);

}  // namespace plimsoll::report
