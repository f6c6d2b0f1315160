#include <doctest/doctest.h>

#include "plimsoll/report/text/folded_names.h"

namespace test_folded_names {

using namespace plimsoll::report;

namespace {

std::vector<std::string> labels(const std::vector<NamedRow>& rows) {
  std::vector<std::string> all;
  for (const FoldedRow& row : folded(rows)) all.push_back(row.label + " x" + std::to_string(row.members.size()));
  return all;
}

}  // namespace

TEST_CASE("consecutive blocks with equal keys become one row, and only those") {
  CHECK(
      labels({{"", "r"}, {"layers.0", "b"}, {"layers.1", "a"}, {"layers.2", "a"}, {"layers.4", "a"}, {"norm", "a"}}) ==
      std::vector<std::string>{" x1", "layers.0 x1", "layers.1-2 x2", "layers.4 x1", "norm x1"});
  CHECK(labels({{"a.0", "k"}, {"b.1", "k"}}) == std::vector<std::string>{"a.0 x1", "b.1 x1"});
  CHECK(labels({{"0", "k"}, {"1", "k"}, {"x1", "k"}, {"2.", "k"}}) ==
        std::vector<std::string>{"0-1 x2", "x1 x1", "2. x1"});
  CHECK(labels({}).empty());
}

TEST_CASE("blocks are alike only where all below them is; then what is below is folded too") {
  std::vector<NamedRow> rows;
  for (const char* block : {"layers.0", "layers.1"}) {
    rows.push_back({block, "b"});
    for (const char* expert : {".experts.0", ".experts.1", ".experts.2"})
      rows.push_back({block + std::string(expert), "e"});
    rows.push_back({std::string(block) + ".norm", "n"});
  }
  CHECK(labels(rows) == std::vector<std::string>{"layers.0-1 x2", "layers.0-1.experts.0-2 x6", "layers.0-1.norm x2"});
  CHECK(folded(rows)[1].members == std::vector<std::size_t>{1, 2, 3, 6, 7, 8});
  CHECK(folded(rows)[2].members == std::vector<std::size_t>{4, 9});
  rows[6].key = "other";
  CHECK(labels(rows) == std::vector<std::string>{"layers.0 x1", "layers.0.experts.0-2 x3", "layers.0.norm x1",
                                                 "layers.1 x1", "layers.1.experts.0 x1", "layers.1.experts.1-2 x2",
                                                 "layers.1.norm x1"});
}

}  // namespace test_folded_names
