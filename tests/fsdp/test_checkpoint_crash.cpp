// Failed and killed saves leave the previous checkpoint, and training resumes from it.

#include <doctest/doctest.h>

#include <functional>
#include <span>

#include "fsdp/checkpoint_training.h"
#include "nn/error_text.h"
#include "plimsoll/base/errors.h"
#include "plimsoll/fsdp/checkpoint/checkpoint.h"

using namespace checkpoint_tests;

namespace {

/// The real disk, with a callback before each of its operations.
class WatchedDisk final : public safetensors::FileOperations {
 public:
  explicit WatchedDisk(std::function<void()> before) : before_(std::move(before)) {}

  int create(const std::filesystem::path& path) override { return before_(), real_.create(path); }
  std::size_t write_some(int file, std::uint64_t offset, std::span<const std::byte> bytes,
                         const std::filesystem::path& path) override {
    return before_(), real_.write_some(file, offset, bytes, path);
  }
  void sync(int file, const std::filesystem::path& path) override { before_(), real_.sync(file, path); }
  void close(int file) noexcept override { real_.close(file); }
  void sync_path(const std::filesystem::path& path) override { before_(), real_.sync_path(path); }
  void make_folder(const std::filesystem::path& path) override { before_(), real_.make_folder(path); }
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    before_(), real_.rename(from, to);
  }
  void remove(const std::filesystem::path& path) override { before_(), real_.remove(path); }

 private:
  std::function<void()> before_;
  safetensors::FileOperations& real_ = safetensors::posix_file_operations();
};

using Net = Training<scenarios::NetworkCase>;
constexpr const char* kLine = "model=network hidden=6+2";

// A complete save of step 2, then one of step 4 in which `victim` is killed before its n-th disk operation. The file
// `done` exists if the kill was not reached.
void save_and_kill(const Folder& folder, int victim, int n, fsdp::CheckpointForm form) {
  ranks::on_ranks(2, [=](const ranks::Rank& rank) {
    join_for_training(rank);
    Net training{Case(kLine)};
    training.run(0, 2);
    fsdp::save_checkpoint(folder.path() / "run", 2, training.model, training.optimizer.get(), {.form = form});
    training.run(2, 4);
    int left = n;
    WatchedDisk disk([&] {
      if (rank.rank == victim && left-- == 0) rank.die();
    });
    try {
      fsdp::save_checkpoint(folder.path() / "run", 4, training.model, training.optimizer.get(),
                            {.form = form, .operations = &disk});
      std::ofstream(folder.path() / ("done" + std::to_string(rank.rank)));
      distributed::destroy_process_group();
    } catch (const c10::DistBackendError& error) {
      // A remaining rank names the collective it waited for.
      const std::string text = error.what();
      CHECK((text.find(" for save_") != std::string::npos || text.find(" for the state '") != std::string::npos));
    } catch (const c10::Error& error) {
      // Rank 0 noticed first and removed the files that this rank was writing.
      CHECK(rank.rank != 0);
    }
  });
}

bool take_up(const Folder& folder) {
  ranks::on_ranks(2, [=](const ranks::Rank& rank) {
    join_for_training(rank);
    Net straight{Case(kLine)};
    straight.run(0, 2);
    std::vector<double> losses = straight.run(2, 6);
    Net training(Case(kLine), /*seed=*/50);
    const auto found = fsdp::load_checkpoint(folder.path() / "run", training.model, training.optimizer.get());
    REQUIRE(found.has_value());
    CHECK((found->step == 2 || found->step == 4));
    losses.erase(losses.begin(), losses.begin() + static_cast<std::ptrdiff_t>(found->step - 2));
    CHECK(training.run(static_cast<int>(found->step), 6) == losses);
    // The next save works normally.
    fsdp::save_checkpoint(folder.path() / "run", 6, training.model, training.optimizer.get());
    if (rank.rank == 0) {
      for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "run")) {
        CHECK(entry.path().filename().string().starts_with("step-"));
      }
    }
    distributed::destroy_process_group();
  });
  return std::filesystem::exists(folder.path() / "done0");
}

void kill_at_many_points(int victim, int stride, fsdp::CheckpointForm form) {
  bool done = false;
  int points = 0;
  for (int n = 0; !done && n < 200; n += stride, ++points) {
    const Folder folder;
    save_and_kill(folder, victim, n, form);
    done = take_up(folder);
    folder.remove();
  }
  CHECK(done);
  CHECK(points > 4);
}

}  // namespace

TEST_CASE("a rank killed at any point of a save leaves a checkpoint that resumes training to the bit") {
  SUBCASE("rank 0, sharded") { kill_at_many_points(0, 9, fsdp::CheckpointForm::kSharded); }
  SUBCASE("rank 1, sharded") { kill_at_many_points(1, 7, fsdp::CheckpointForm::kSharded); }
  SUBCASE("rank 0, full") { kill_at_many_points(0, 11, fsdp::CheckpointForm::kFull); }
}

TEST_CASE("if a rank cannot write, all fail with its message, and the previous checkpoint stays") {
  for (const int victim : {0, 1}) {
    const Folder folder;
    ranks::on_ranks(2, [=](const ranks::Rank& rank) {
      join_for_training(rank);
      Net training{Case(kLine)};
      training.run(0, 2);
      fsdp::save_checkpoint(folder.path(), 2, training.model, training.optimizer.get());
      const auto shards = training.shards();
      training.run(2, 3);
      for (const int n : {3, 6}) {
        int left = n;
        WatchedDisk disk([&] {
          if (rank.rank == victim && left-- == 0) throw SystemError("write", ENOSPC);
        });
        const std::string text = error_text([&] {
          fsdp::save_checkpoint(folder.path(), 3, training.model, training.optimizer.get(), {.operations = &disk});
        });
        const std::string expected = " failed on rank " + std::to_string(victim) + ": write: No space left on device";
        CHECK(text.find(expected) != std::string::npos);
        CHECK(safetensors::CheckpointFolder(folder.path()).steps() == std::vector<std::uint64_t>{2});
        if (rank.rank != 0) continue;  // Rank 0 removes the written files.
        CHECK(!std::filesystem::exists(safetensors::CheckpointFolder(folder.path()).pending_path(3)));
      }
      // The group still works: so does the next save.
      fsdp::save_checkpoint(folder.path(), 3, training.model, training.optimizer.get());
      CHECK(fsdp::load_checkpoint(folder.path(), training.model, training.optimizer.get(), {.step = 2})->step == 2);
      CHECK(same(training.shards(), shards));
      distributed::destroy_process_group();
    });
    folder.remove();
  }
}
