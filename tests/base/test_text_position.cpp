#include <doctest/doctest.h>

#include "plimsoll/base/text.h"

namespace test_text_position {

using plimsoll::line_and_column;

TEST_CASE("a byte of a text has a line and a column, both from 1") {
  CHECK(line_and_column("{", 1) == "line 1, column 1");
  CHECK(line_and_column("{", 2) == "line 1, column 2");
  CHECK(line_and_column("ab\ncd\n", 3) == "line 1, column 3");
  CHECK(line_and_column("ab\ncd\n", 5) == "line 2, column 2");
  CHECK(line_and_column("ab\ncd\n", 7) == "line 3, column 1");
}

TEST_CASE("bytes outside of the text have the nearest place") {
  CHECK(line_and_column("", 0) == "line 1, column 1");
  CHECK(line_and_column("", 9) == "line 1, column 1");
  CHECK(line_and_column("a\nb", 9) == "line 2, column 2");
}

}  // namespace test_text_position
