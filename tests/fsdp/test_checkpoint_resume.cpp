// Training that is saved, loaded and resumed.

#include <doctest/doctest.h>

#include "fsdp/checkpoint_training.h"
#include "nn/error_text.h"
#include "plimsoll/fsdp/checkpoint/checkpoint.h"

using namespace checkpoint_tests;

namespace {

void check_resume(const char* line, const std::filesystem::path& folder, fsdp::CheckpointForm form) {
  with_kind(line, [&](const Case& c, auto kind) {
    using Training = typename decltype(kind)::type;
    CAPTURE(line);
    if (c.has("built")) return;  // Its first values are undefined.
    Training straight(c);
    straight.run(0, 3);
    const auto losses = straight.run(3, 6);
    {
      Training first(c);
      first.run(0, 3);
      fsdp::save_checkpoint(folder, 3, first.model, first.optimizer.get(), {.form = form, .metadata = {{"who", "me"}}});
    }
    Training second(c, /*seed=*/50);
    const auto found = fsdp::load_checkpoint(folder, second.model, second.optimizer.get());
    REQUIRE(found.has_value());
    CHECK(found->step == 3);
    CHECK(found->metadata.at("who") == "me");
    CHECK(second.run(3, 6) == losses);
    CHECK(same(second.shards(), straight.shards()));
  });
}

void resume_on(int world, fsdp::CheckpointForm form) {
  const Folder folder;
  ranks::on_ranks(world, [=](const ranks::Rank& rank) {
    join_for_training(rank);
    int number = 0;
    for (const char* line : kCases) check_resume(line, folder.path() / std::to_string(number++), form);
    distributed::destroy_process_group();
  });
  folder.remove();
}

}  // namespace

TEST_CASE("training that is saved and resumed on two ranks equals training without a stop, to the bit") {
  SUBCASE("sharded") { resume_on(2, fsdp::CheckpointForm::kSharded); }
  SUBCASE("full") { resume_on(2, fsdp::CheckpointForm::kFull); }
}

TEST_CASE("training that is saved and resumed on four ranks equals training without a stop, to the bit") {
  SUBCASE("sharded") { resume_on(4, fsdp::CheckpointForm::kSharded); }
  SUBCASE("full") { resume_on(4, fsdp::CheckpointForm::kFull); }
}

namespace {

using Line = const char*;

// Saves with one configuration, loads with another, and compares the whole state of both.
void check_other(int from_world, Line from, int to_world, Line to, fsdp::CheckpointForm form) {
  const Folder folder;
  ranks::on_ranks(from_world, [=](const ranks::Rank& rank) {
    join_for_training(rank);
    with_kind(from, [&](const Case& c, auto kind) {
      typename decltype(kind)::type training(c);
      training.run(0, 2);
      fsdp::save_checkpoint(folder.path() / "run", 2, training.model, training.optimizer.get(), {.form = form});
      fsdp::save_state(training.model, folder.path() / "saved");
      fsdp::save_optimizer_state(training.model, *training.optimizer, folder.path() / "saved");
    });
    distributed::destroy_process_group();
  });
  ranks::on_ranks(to_world, [=](const ranks::Rank& rank) {
    join_for_training(rank);
    with_kind(to, [&](const Case& c, auto kind) {
      typename decltype(kind)::type training(c, /*seed=*/50);
      CHECK(fsdp::load_checkpoint(folder.path() / "run", training.model, training.optimizer.get())->step == 2);
      fsdp::save_state(training.model, folder.path() / "loaded");
      fsdp::save_optimizer_state(training.model, *training.optimizer, folder.path() / "loaded");
      for (const double loss : training.run(2, 4)) CHECK(std::isfinite(loss));
    });
    distributed::destroy_process_group();
  });
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    const std::string saved = contents(folder.path() / "saved" / file);
    CHECK(saved.size() > 1000);
    CHECK(saved == contents(folder.path() / "loaded" / file));
  }
  folder.remove();
}

}  // namespace

TEST_CASE("a checkpoint loads on another number of ranks, another mesh and another dimension") {
  constexpr auto kSharded = fsdp::CheckpointForm::kSharded;
  constexpr auto kFull = fsdp::CheckpointForm::kFull;
  SUBCASE("2 to 4") { check_other(2, "model=network", 4, "model=network", kSharded); }
  SUBCASE("4 to 2, full") { check_other(4, "model=network", 2, "model=network", kFull); }
  SUBCASE("4 to 1") { check_other(4, "model=gpt", 1, "model=gpt", kSharded); }
  SUBCASE("1 to 3") { check_other(1, "model=network", 3, "model=network built=meta", kSharded); }
  SUBCASE("HSDP to FSDP") { check_other(4, "model=network hsdp=2", 4, "model=network", kSharded); }
  SUBCASE("FSDP to HSDP, SGD") {
    check_other(2, "model=network optimizer=sgd", 4, "model=network hsdp=2 optimizer=sgd", kSharded);
  }
  SUBCASE("dimension 0 to 1") { check_other(4, "model=gpt", 2, "model=gpt shard_dim=1", kSharded); }
  SUBCASE("dimension 1 to 0") { check_other(2, "model=gpt shard_dim=1", 4, "model=gpt", kSharded); }
  SUBCASE("two meshes to one") { check_other(4, "model=network second_mesh=1", 2, "model=network", kSharded); }
}

TEST_CASE("a folder without checkpoints has nothing to load, and training begins") {
  const Folder folder;
  ranks::on_ranks(2, [=](const ranks::Rank& rank) {
    join_for_training(rank);
    Training<scenarios::NetworkCase> training(Case("model=network"));
    CHECK(!fsdp::load_checkpoint(folder.path() / "none", training.model, training.optimizer.get()));
    const auto text = error_text([&] { fsdp::load_checkpoint(folder.path(), training.model, nullptr, {.step = 7}); });
    CHECK(text.find("load_checkpoint failed on rank 0: ") == 0);
    CHECK(text.find("7") != std::string::npos);
    distributed::destroy_process_group();
  });
  folder.remove();
}

TEST_CASE("an older kept checkpoint can be loaded, and still older ones are removed") {
  const Folder folder;
  ranks::on_ranks(2, [=](const ranks::Rank& rank) {
    join_for_training(rank);
    Training<scenarios::NetworkCase> training(Case("model=network"));
    std::vector<std::vector<at::Tensor>> shards;
    for (int step = 1; step <= 3; ++step) {
      training.run(step, step + 1);
      shards.push_back(training.shards());
      fsdp::save_checkpoint(folder.path(), static_cast<std::uint64_t>(step), training.model, nullptr, {.keep = 2});
    }
    CHECK(safetensors::CheckpointFolder(folder.path()).steps() == std::vector<std::uint64_t>{2, 3});
    CHECK(fsdp::load_checkpoint(folder.path(), training.model, nullptr, {.step = 2})->step == 2);
    CHECK(same(training.shards(), shards[1]));
    CHECK(fsdp::load_checkpoint(folder.path(), training.model, nullptr)->step == 3);
    CHECK(same(training.shards(), shards[2]));
    const auto text = error_text([&] { fsdp::save_checkpoint(folder.path(), 3, training.model, nullptr); });
    CHECK(text.find("save_checkpoint failed on rank 0: ") == 0);
    distributed::destroy_process_group();
  });
  folder.remove();
}
