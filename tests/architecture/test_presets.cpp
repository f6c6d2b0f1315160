#include <doctest/doctest.h>

#include <set>
#include <string>

#include "plimsoll/architecture/architecture.h"

namespace plimsoll::architecture::test_presets {

TEST_CASE("every preset has the published number of parameters") {
  std::set<Family> families;
  for (const auto& preset : presets()) {
    CAPTURE(preset.name);
    const auto architecture = architecture_of(preset);
    families.insert(architecture.family);
    CHECK(count_parameters(architecture).total == preset.parameters);
  }
  CHECK(families.size() == std::size(kFamilyNames));
}

TEST_CASE("a preset is found by its name or an alias, in any case") {
  REQUIRE(find_preset("llama3-8b") != nullptr);
  CHECK(find_preset("llama3-8b")->parameters == 8'030'261'248);
  CHECK(find_preset("llama3-8") == nullptr);
  CHECK(find_preset("") == nullptr);
  CHECK(find_preset("Llama3-405B") == find_preset("llama3.1-405b"));
  CHECK(find_preset("mistral-7b")->name == "mistral-7b-v0.3");
}

TEST_CASE("names and aliases are unique and lower case") {
  std::set<std::string> names;
  for (const Preset& preset : presets()) {
    std::vector<std::string> all = preset.aliases;
    all.push_back(preset.name);
    for (const std::string& name : all) {
      CHECK_MESSAGE(names.insert(name).second, name);
      CHECK_MESSAGE(name.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ /") == std::string::npos, name);
    }
  }
}

TEST_CASE("the parameters of the blocks, embeddings, head and last norm add up to the model's") {
  for (const auto& preset : presets()) {
    CAPTURE(preset.name);
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

TEST_CASE("active parameters count only the experts of one token") {
  // Mistral AI publishes 12.9 of 46.7 billion.
  const auto count = count_parameters(architecture_of(*find_preset("mixtral-8x7b")));
  CHECK(count.active == 12'879'925'248);
}

}  // namespace plimsoll::architecture::test_presets
