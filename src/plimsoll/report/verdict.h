#pragma once

#include <string>

#include "plimsoll/report/report.h"
#include "plimsoll/report/text/amounts.h"
#include "plimsoll/report/text/table.h"

namespace plimsoll::report {

/// The verdict of a report from its other values. Every command uses this one. `reserve` is memory that must be left.
Verdict verdict_of(const Report& report, Bytes reserve = 0);

/// The verdict as one sentence: "Fits: 60.00 of 79.11 GiB used on an H100-80GB, 19.11 GiB left."
std::string verdict_sentence(const Report& report, const Amounts& amounts);

/// "fits", "fits, only just", "does not fit", "no verdict"
std::string verdict_words(const Verdict& verdict);
Ink verdict_ink(const Verdict& verdict);

/// The sentence with its first words, up to the colon, in the ink of the verdict; ends with a line feed.
std::string verdict_line(const Report& report, const Amounts& amounts, Colour colour);

/// "17.91 GiB left", "13.99 GiB too much"; "" if that is not known.
std::string spare_words(const Verdict& verdict, const Amounts& amounts);

/// The first book that alone exceeds the card, in the order in which they enclose one another: "active" (tensors),
/// "reserved", "device"; "" if no book does.
std::string book_that_exceeds(const Peak& peak, Bytes card);

/// Of a planned job that ran out of memory: the book that exceeds the card, in one sentence.
std::string exceeding_book(const Report& report, const Amounts& amounts);

/// Of a planned job: which book exceeds the card, and where memory ran out; "" if it fits.
std::string why_it_does_not_fit(const Report& report, const Amounts& amounts);

/// "79.05 of 79.11 GiB", "500.00 MiB of 79.11 GiB"
std::string part_of(Bytes part, Bytes whole, const Amounts& amounts);

}  // namespace plimsoll::report
