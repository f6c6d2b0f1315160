#include <doctest/doctest.h>

#include <set>
#include <string>

#include "plimsoll/architecture/presets.h"

namespace plimsoll::architecture::test_presets {

TEST_CASE("every preset has as many parameters as the model is published with") {
  std::set<std::string_view> names;
  std::set<Family> families;
  for (const auto& preset : presets()) {
    CAPTURE(std::string(preset.name));
    CHECK(names.insert(preset.name).second);
    const auto architecture = architecture_of(preset);
    families.insert(architecture.family);
    CHECK(count_parameters(architecture).total == preset.parameters);
  }
  CHECK(families.size() == std::size(kFamilyNames));
}

TEST_CASE("a preset is found by its name, and no other") {
  REQUIRE(find_preset("llama3-8b") != nullptr);
  CHECK(find_preset("llama3-8b")->parameters == 8'030'261'248);
  CHECK(find_preset("llama3-8") == nullptr);
  CHECK(find_preset("") == nullptr);
}

TEST_CASE("a model's parameters are those of its blocks, its embeddings, its head and its last norm") {
  for (const auto& preset : presets()) {
    CAPTURE(std::string(preset.name));
    const auto architecture = architecture_of(preset);
    const auto all = count_parameters(architecture);
    std::int64_t total = all.embeddings + all.head, active = total;
    for (std::int64_t block = 0; block < architecture.blocks; ++block) {
      const auto of_block = count_block(architecture, block);
      total += of_block.total;
      active += of_block.active;
      CHECK((of_block.active < of_block.total) == architecture.has_experts(block));
    }
    const auto norm = architecture.dim * (architecture.family == Family::kGPT2 ? 2 : 1);
    CHECK(all.total == total + norm);
    CHECK(all.active == active + norm);
    CHECK((all.head == 0) == architecture.tied_embeddings);
  }
}

TEST_CASE("of experts a token uses those it is sent to") {
  // As its makers say: 12.9 billion of 46.7.
  const auto count = count_parameters(architecture_of(*find_preset("mixtral-8x7b")));
  CHECK(count.active == 12'879'925'248);
}

}  // namespace plimsoll::architecture::test_presets
