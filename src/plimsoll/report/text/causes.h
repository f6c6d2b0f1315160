#pragma once

#include <string>
#include <vector>

#include "plimsoll/report/attribution.h"
#include "plimsoll/report/text/amounts.h"

namespace plimsoll::report {

/// "8.00 MiB Temp of layers.0 and layers.1: gradients of activations, and temporaries (12 allocations)."
std::string sentence(const PeakCause& cause);

/// The causes of the peak below a heading, after an empty line; "" without causes. Shares are parts of `active`. `when`
/// goes into the heading: "step 1, backward".
std::string cause_list(const std::vector<PeakCause>& causes, Bytes active, const std::string& when,
                       const Amounts& amounts);

}  // namespace plimsoll::report
