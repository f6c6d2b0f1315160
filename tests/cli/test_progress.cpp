#include <doctest/doctest.h>

#include <sstream>

#include "plimsoll/cli/documents.h"

namespace test_progress {

using plimsoll::cli::Progress;

TEST_CASE("the bar is one line, and is erased at the end") {
  std::ostringstream stream;
  {
    Progress progress(stream, true);
    progress.show(6, 12, "3 fit");
    CHECK(stream.str().starts_with("\r\x1b[K\x1b[2m[############------------] 6 of 12 jobs"));
  }
  CHECK(stream.str().ends_with("\r\x1b[K"));
}

TEST_CASE("the bar is drawn at most ten times a second") {
  std::ostringstream stream;
  Progress progress(stream, true);
  for (std::size_t i = 0; i < 1000; ++i) progress.show(i, 1000, "");
  CHECK(stream.str().size() < 1000);
}

TEST_CASE("nothing is drawn without a terminal") {
  std::ostringstream stream;
  {
    Progress progress(stream, false);
    progress.show(1, 2, "x");
  }
  CHECK(stream.str().empty());
}

}  // namespace test_progress
