#pragma once

#include <string>

#include "plimsoll/report/plan_report.h"
#include "plimsoll/report/text/amounts.h"

namespace plimsoll::report {

enum class Verdict {
  kFits,
  kBarely,  ///< The caching allocator had to empty its cache to find room.
  kDoesNotFit,
};

Verdict verdict_of(const PlanReport& report);

/// "fits", "fits, barely", "does not fit".
std::string verdict_words(Verdict verdict);
Ink verdict_ink(Verdict verdict);

/// "17.91 GiB to spare", "13.99 GiB short": the card beside the device book.
std::string spare_or_short(const PlanReport& report, const Amounts& amounts);

/// The first book that alone is more than the card, in the order in which they enclose one another: "active" (tensors),
/// "reserved", "device"; "" where none is.
std::string book_that_exceeds(const Peak& peak, Bytes card);

/// One line: the verdict and its numbers; ends with a line feed.
std::string verdict_line(const PlanReport& report, const Amounts& amounts, Colour colour);

/// Which book exceeds the card, and where memory ran out; "" where it fits.
std::string why_it_does_not_fit(const PlanReport& report, const Amounts& amounts);

/// "step 1, backward, layers.31".
std::string peak_moment(const AttributedPeak& peak);

}  // namespace plimsoll::report
