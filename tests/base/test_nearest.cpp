#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "plimsoll/base/nearest.h"

namespace test_nearest {

using plimsoll::did_you_mean;
using plimsoll::nearest;
using Words = std::vector<std::string>;

namespace {
const Words kCards = {"A100-40GB", "A100-80GB", "H100-80GB", "H100-96GB"};
}

TEST_CASE("a word that begins candidates means those, in the order given") {
  CHECK(nearest("h100", kCards, 5) == Words{"H100-80GB", "H100-96GB"});
  CHECK(nearest("h100", kCards, 1) == Words{"H100-80GB"});
  CHECK(nearest("A100-8", kCards, 5) == Words{"A100-80GB"});
}

TEST_CASE("else it means those with the fewest edits, whatever the case") {
  CHECK(nearest("h10-80gb", kCards, 5) == Words{"H100-80GB"});
  CHECK(nearest("B100-80GB", kCards, 5) == Words{"A100-80GB", "H100-80GB"});
  CHECK(nearest("B100-80GB", kCards, 1) == Words{"A100-80GB"});
}

TEST_CASE("what is near to nothing means nothing") {
  CHECK(nearest("toaster", kCards, 5).empty());
  CHECK(nearest("", kCards, 5).empty());
  CHECK(nearest("", Words{"a", "ab"}, 5).empty());
  CHECK(nearest("xy", Words{"ab"}, 5).empty());
  CHECK(nearest("word", Words{}, 5).empty());
  CHECK(nearest(std::string(1 << 20, 'x'), kCards, 5).empty());
}

TEST_CASE("the question lists them, and is empty where there are none") {
  CHECK(did_you_mean("B100-80GB", kCards) == "did you mean A100-80GB or H100-80GB?");
  CHECK(did_you_mean("h10-80gb", kCards) == "did you mean H100-80GB?");
  CHECK(did_you_mean("toaster", kCards).empty());
}

}  // namespace test_nearest
