#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "plimsoll/base/text.h"

namespace test_nearest {

using plimsoll::did_you_mean;
using plimsoll::nearest;
using Words = std::vector<std::string>;

namespace {
const Words kCards = {"A100-40GB", "A100-80GB", "H100-80GB", "H100-96GB"};
}

TEST_CASE("a word that is the start of candidates matches these, in the given order") {
  CHECK(nearest("h100", kCards, 5) == Words{"H100-80GB", "H100-96GB"});
  CHECK(nearest("h100", kCards, 1) == Words{"H100-80GB"});
  CHECK(nearest("A100-8", kCards, 5) == Words{"A100-80GB"});
}

TEST_CASE("otherwise a word matches the candidates with the fewest edits, in any case") {
  CHECK(nearest("h10-80gb", kCards, 5) == Words{"H100-80GB"});
  CHECK(nearest("B100-80GB", kCards, 5) == Words{"A100-80GB", "H100-80GB"});
  CHECK(nearest("B100-80GB", kCards, 1) == Words{"A100-80GB"});
}

TEST_CASE("a word that is near to no candidate matches nothing") {
  CHECK(nearest("toaster", kCards, 5).empty());
  CHECK(nearest("gemma3-4b", Words{"llama3-8b"}, 5).empty());
  CHECK(nearest("batchsize", Words{"ba", "bat", "batch", "size"}, 5) == Words{"batch"});
  CHECK(nearest("", kCards, 5).empty());
  CHECK(nearest("", Words{"a", "ab"}, 5).empty());
  CHECK(nearest("xy", Words{"ab"}, 5).empty());
  CHECK(nearest("word", Words{}, 5).empty());
  CHECK(nearest(std::string(1 << 20, 'x'), kCards, 5).empty());
}

TEST_CASE("the question lists the matches, and is empty if no candidate matches") {
  CHECK(did_you_mean("B100-80GB", kCards) == "did you mean A100-80GB or H100-80GB?");
  CHECK(did_you_mean("h10-80gb", kCards) == "did you mean H100-80GB?");
  CHECK(did_you_mean("toaster", kCards).empty());
}

}  // namespace test_nearest
