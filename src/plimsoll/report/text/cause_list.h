#pragma once

#include <string>
#include <vector>

#include "plimsoll/report/attribution.h"
#include "plimsoll/report/text/amounts.h"

namespace plimsoll::report {

/// The peak cause by cause under a heading, after an empty line; "" without causes. `active` is what the shares are of,
/// `when` goes into the heading: "step 1, backward".
std::string cause_list(const std::vector<PeakCause>& causes, Bytes active, const std::string& when,
                       const Amounts& amounts);

}  // namespace plimsoll::report
