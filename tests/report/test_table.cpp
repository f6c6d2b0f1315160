#include <doctest/doctest.h>

#include "plimsoll/base/errors.h"
#include "plimsoll/report/text/table.h"

namespace test_table {

using namespace plimsoll::report;

TEST_CASE("columns are as wide as their widest cell, aligned, and no line ends with blanks") {
  Table table({{"book"}, {"peak", Align::kRight}, {"note"}});
  table.add({"active", "1.00 GiB", ""});
  table.add({"x", "7 B"});
  CHECK(table.render("> ") ==
        "> book        peak  note\n"
        "> ------  --------  ----\n"
        "> active  1.00 GiB\n"
        "> x            7 B\n");
}

TEST_CASE("widths are counted in characters, not bytes") {
  Table table({{"a"}, {"b"}});
  table.add({"\xC3\xA9\xC3\xA9", "1"});
  table.add({"ee", "2"});
  CHECK(table.render("") == "a   b\n--  -\n\xC3\xA9\xC3\xA9  1\nee  2\n");
}

TEST_CASE("a row with too many cells is a bug") {
  Table table({{"a"}});
  CHECK(table.empty());
  CHECK_THROWS_WITH_AS(table.add({"1", "2"}), "a table's row has more cells than the table has columns",
                       plimsoll::InternalError);
}

TEST_CASE("text is coloured only when that is asked for") {
  CHECK(paint("fits", Ink::kGood, Colour::kNever) == "fits");
  CHECK(paint("fits", Ink::kGood, Colour::kAlways) == "\x1b[1;32mfits\x1b[0m");
}

}  // namespace test_table
