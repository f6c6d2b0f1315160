#pragma once

#include <string>

#include "plimsoll/report/amounts.h"
#include "plimsoll/report/step_rows.h"

/// The tables that the reports of all commands share.
namespace plimsoll::report {

/// The three books at their highest, beside the card, and what the device's consists of.
std::string books_table(const Peak& peak, Bytes card, const Amounts& amounts);

/// Peaks by step under a heading, after an empty line; "" without rows.
std::string step_table(const std::vector<StepRow>& rows, const Amounts& amounts);

}  // namespace plimsoll::report
