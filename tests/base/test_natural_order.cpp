#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plimsoll/base/text.h"

using namespace plimsoll;

TEST_CASE("natural order compares numbers by value and ignores case") {
  std::vector<std::string> names{
      "b", "a10", "a9", "a", "A1", "a09b", "a9a", "a100000000000000000000", "a99999999999999999999"};
  std::sort(names.begin(), names.end(), natural_less);
  CHECK(names == std::vector<std::string>{"a", "A1", "a9", "a9a", "a09b", "a10", "a99999999999999999999",
                                          "a100000000000000000000", "b"});
  CHECK_FALSE(natural_less("layers.1", "layers.1"));
}

TEST_CASE("in natural order the children of a module directly follow it") {
  std::vector<std::string> names{"layers-old", "layers 2", "layers.10", "layers", "layers.9.mlp", "layers.9"};
  std::sort(names.begin(), names.end(), natural_less);
  CHECK(names == std::vector<std::string>{"layers", "layers.9", "layers.9.mlp", "layers.10", "layers 2", "layers-old"});
}

TEST_CASE("as the order of a container, natural order tells names apart that differ only in case") {
  CHECK_FALSE(natural_less("Adam", "adam"));
  CHECK(NaturalOrder()("Adam", "adam"));
  CHECK_FALSE(NaturalOrder()("adam", "Adam"));
}
