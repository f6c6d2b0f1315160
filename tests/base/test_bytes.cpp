#include <doctest/doctest.h>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/errors.h"

namespace test_bytes {

using plimsoll::Bytes;
using plimsoll::format_bytes;
using plimsoll::parse_bytes;
using plimsoll::round_up;
using namespace plimsoll::literals;

TEST_CASE("bytes are written in the largest IEC unit that keeps the number at or above one") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(1023) == "1023 B");
  CHECK(format_bytes(1_KiB) == "1.00 KiB");
  CHECK(format_bytes(1536_MiB) == "1.50 GiB");
  CHECK(format_bytes(84943110144) == "79.11 GiB");
  CHECK(format_bytes(3_TiB) == "3.00 TiB");
  CHECK(format_bytes(5000_TiB) == "5000.00 TiB");
}

TEST_CASE("an amount of memory is read with IEC units, SI units or no unit") {
  CHECK(parse_bytes("80GiB") == 80_GiB);
  CHECK(parse_bytes(" 1.5 KiB ") == 1536_B);
  CHECK(parse_bytes("24 GB") == 24'000'000'000);
  CHECK(parse_bytes("1024") == 1_KiB);
  CHECK(parse_bytes("7B") == 7_B);
  CHECK(parse_bytes("0") == 0_B);
}

TEST_CASE("an invalid amount of memory is refused with the text and an example") {
  for (const char* text : {"", "GiB", "80 gigs", "-1GiB", "nan", "inf", "1e30TiB", "12GiB3"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(parse_bytes(text),
                         doctest::Contains(("'" + std::string(text) + "' is not an amount of memory").c_str()),
                         plimsoll::InvalidArgument);
  }
}

TEST_CASE("rounding up gives the smallest multiple that is not less") {
  CHECK(round_up(0, 512) == 0);
  CHECK(round_up(1, 512) == 512);
  CHECK(round_up(512, 512) == 512);
  CHECK(round_up(513, 512) == 1024);
}

}  // namespace test_bytes
