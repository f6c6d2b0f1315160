#include <doctest/doctest.h>

#include "plimsoll/tracker/attribution/attribution.h"
#include "plimsoll/tracker/attribution/user_paths.h"

namespace plimsoll {

namespace {

ModuleTree language_model() {
  return {.modules = {{"Net", "Net", true, 100},
                      {"Net.layers", "ModuleList", false, 90},
                      {"Net.layers.3", "Wrapper", true, 10},
                      {"Net.layers.3.block", "Block", false, 10},
                      {"Net.layers.3.block.act", "ReLU", false, 0},
                      {"Net.layers.10", "Block", true, 10},
                      {"Data", "Data", false, 0}},
          .wrappers = {"block"}};
}

LiveTensor live(Bytes bytes, const std::string& category, const std::string& owner) {
  return {static_cast<std::int64_t>(bytes), category, owner, std::nullopt, std::nullopt};
}

}  // namespace

TEST_CASE("a user-facing path has neither the only root nor wrappers") {
  const UserPaths paths(language_model());
  CHECK(paths.of("Net") == "");
  CHECK(paths.of("Net.layers.3") == "layers.3");
  CHECK(paths.of("Net.layers.3.block.attention.wq") == "layers.3.attention.wq");
  CHECK(paths.of("AdamW") == "AdamW");
  CHECK(paths.depth("") == 0);
  CHECK(paths.depth("layers.3") == 2);
  CHECK(paths.depth("Data") == 0);
  CHECK(paths.with_ancestors("layers.3") == std::vector<std::string>{"layers.3", "layers", ""});
}

TEST_CASE("consecutive modules that are sharded together are a range in the owner's name") {
  const UserPaths paths(language_model());
  CHECK(paths.of_owner("Net.layers.8, Net.layers.9, Net.layers.10") == "layers.8-10");
  CHECK(paths.of_owner("Net.layers.1, Net.layers.3.block") == "layers.1, layers.3");
  CHECK(paths.of_owner("Net.norm, Net") == "norm, the root");
  CHECK(paths.of_owner("Net") == "the root");
  CHECK(paths.of_owner("no module") == "no module");
}

TEST_CASE("if several models have parameters, each path starts with the class of its root") {
  const UserPaths paths(
      {.modules = {{"Gen", "Gen", false, 4}, {"Gen.up", "Linear", false, 4}, {"Disc", "Disc", false, 2}},
       .wrappers = {}});
  CHECK(paths.of("Gen.up") == "Gen.up");
  CHECK(paths.of_owner("Gen") == "Gen");
  CHECK(paths.depth("Gen.up") == 1);
  CHECK(paths.with_ancestors("Gen.up") == std::vector<std::string>{"Gen.up", "Gen"});
}

TEST_CASE("module rows count bytes with all below; groups and optimizers have rows of their own") {
  const auto tree = language_model();
  const UserPaths paths(tree);
  const auto rows = module_rows(tree, paths,
                                {live(8, "Parameter", "Net.layers.3.block"), live(2, "Temp", "Net.layers.3.block.act"),
                                 live(5, "Sharded Param", "Net.layers.3, Net.layers.10"), live(7, "Optstate", "AdamW"),
                                 live(1, "Other", ""), live(0, "Temp", "Net")},
                                {{"layers.3.act", 40}, {"layers.3", 50}}, 3);
  std::vector<std::string> names;
  for (const auto& row : rows) names.push_back(row.name + ":" + row.type + ":" + std::to_string(row.total));
  CHECK(names == std::vector<std::string>{":Net:15", "layers:ModuleList:15", "layers.3:Block:10", "layers.3.act:ReLU:2",
                                          "layers.10:Block:0", "layers.3, layers.10:sharded together:5",
                                          "(no module)::1", "AdamW:optimizer:7"});
  CHECK(rows[2].fsdp_unit);
  CHECK(rows[2].highest == 50);
  CHECK((rows[2].at_peak == std::vector<report::CategoryBytes>{{"Parameter", 8}, {"Temp", 2}}));
  CHECK((rows.back().at_peak == std::vector<report::CategoryBytes>{{"OptState", 7}}));
}

}  // namespace plimsoll
