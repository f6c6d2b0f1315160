#include <doctest/doctest.h>

#include "plimsoll/base/errors.h"
#include "plimsoll/report/text/amounts.h"

namespace test_amounts {

using namespace plimsoll::report;
using namespace plimsoll::literals;

TEST_CASE("amounts are in the unit that is asked for, or in the largest that fits") {
  CHECK(Amounts()(1536_MiB) == "1.50 GiB");
  CHECK(Amounts(ByteUnit::kMiB)(1536_MiB) == "1536.00 MiB");
  CHECK(Amounts(ByteUnit::kKiB)(1_MiB) == "1024.00 KiB");
  CHECK(Amounts(ByteUnit::kGiB)(1_MiB) == "0.00 GiB");
  CHECK(Amounts(ByteUnit::kB)(1_GiB) == "1073741824 B");
}

TEST_CASE("changes have a sign, and none has none") {
  CHECK(Amounts().change(1_GiB, 3_GiB) == "+2.00 GiB");
  CHECK(Amounts().change(3_GiB, 1_GiB) == "-2.00 GiB");
  CHECK(Amounts().change(1_GiB, 1_GiB) == "0 B");
}

TEST_CASE("units are read in any case; what is none is quoted") {
  CHECK(parse_byte_unit("GiB") == ByteUnit::kGiB);
  CHECK(parse_byte_unit("mib") == ByteUnit::kMiB);
  CHECK_THROWS_WITH_AS(parse_byte_unit("GB"), "'GB' is not a unit of memory: write B, KiB, MiB or GiB",
                       plimsoll::InvalidArgument);
}

TEST_CASE("parameters are counted as models are named") {
  CHECK(parameter_count(8030261248) == "8.03 B");
  CHECK(parameter_count(124439808) == "124.44 M");
  CHECK(parameter_count(1200000000000) == "1.20 T");
  CHECK(parameter_count(4096) == "4096");
}

TEST_CASE("text is broken at blanks, by characters, and a long word stays whole") {
  CHECK(wrapped("aa bb cc", 5, "  ") == "aa bb\n  cc");
  CHECK(wrapped("\xC3\xA9\xC3\xA9 bb", 5, "") == "\xC3\xA9\xC3\xA9 bb");
  CHECK(wrapped("aaaaaaaa b", 5, " ") == "aaaaaaaa\n b");
  CHECK(wrapped("", 5, " ") == "");
}

}  // namespace test_amounts
