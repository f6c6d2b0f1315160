#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "plimsoll/safetensors/checkpoint_folder.h"
#include "safetensors/checkpoint_contents.h"
#include "safetensors/faulty_operations.h"
#include "safetensors/scratch.h"

namespace test_crash {

using namespace plimsoll;
using namespace plimsoll::safetensors;
namespace fs = std::filesystem;
using Loss = FaultyOperations::Loss;
using Steps = std::vector<std::uint64_t>;

namespace {

constexpr Loss kLosses[] = {Loss::kNothing, Loss::kFileBytes, Loss::kEverything};

/// Runs `work` in a child process, on a disk that stops before operation `n`. True if the work ended; the disk then
/// stops right after it.
bool survives(std::uint64_t n, Loss loss, const fs::path& graveyard, const std::function<void(FileOperations&)>& work) {
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  std::cout.flush();  // Otherwise a sanitizer's _exit writes the buffer once per child.
  std::fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    fs::create_directories(graveyard);
    FaultyOperations operations(n, loss, graveyard);
    try {
      work(operations);
    } catch (...) {
      _exit(1);
    }
    if (write(pipe_ends[1], "!", 1) != 1) _exit(1);
    operations.crash();
  }
  close(pipe_ends[1]);
  char end = 0;
  const bool ended = read(pipe_ends[0], &end, 1) == 1;
  close(pipe_ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == FaultyOperations::kCrashed);
  return ended;
}

void save(const fs::path& runs, FileOperations& operations, const Steps& steps, std::size_t keep = 2) {
  CheckpointFolder folder(runs, {.keep = keep, .operations = &operations});
  for (const std::uint64_t step : steps) save_checkpoint(folder, step, operations);
}

/// Crashes before each operation of saving step 3.
void crash_everywhere(Loss loss, std::size_t keep, const std::function<void(const fs::path& runs)>& before,
                      const std::function<void(const fs::path& runs, bool ended)>& after) {
  std::uint64_t n = 0;
  for (bool ended = false; !ended; ++n) {
    CAPTURE(n);
    const Scratch scratch;
    const fs::path runs = scratch.path / "runs";
    before(runs);
    ended = survives(n, loss, scratch.path / "graveyard", [&](FileOperations& disk) { save(runs, disk, {3}, keep); });
    after(runs, ended);
  }
  CHECK(n > 30);
}

}  // namespace

TEST_CASE("a crash before any operation of a save leaves the previous checkpoint loadable, and the next save works") {
  for (const Loss loss : kLosses) {
    for (const std::size_t keep : {1, 2}) {
      CAPTURE(static_cast<int>(loss));
      CAPTURE(keep);
      bool was_there = false;
      crash_everywhere(
          loss, keep, [](const fs::path& runs) { save(runs, posix_file_operations(), {1, 2}); },
          [&](const fs::path& runs, bool ended) {
            const CheckpointFolder folder(runs);
            REQUIRE(folder.newest().has_value());
            const std::uint64_t newest = folder.newest()->manifest.step;
            CHECK((newest == 2 || newest == 3));
            CHECK((newest == 3 || !(ended || was_there)));
            was_there = was_there || (newest == 3 && loss != Loss::kEverything);
            const Steps steps = folder.steps();
            for (const std::uint64_t step : steps) check_contents(folder.at(step));
            if (ended) CHECK(steps == (keep == 1 ? Steps{3} : Steps{2, 3}));

            save(runs, posix_file_operations(), {4});
            CHECK(folder.steps() == Steps{newest, 4});
            for (const std::uint64_t step : folder.steps()) check_contents(folder.at(step));
            CHECK(Scratch::names_in(runs).size() == 2);
          });
    }
  }
}

TEST_CASE("a crash during the first save leaves no checkpoint or a complete one") {
  for (const Loss loss : kLosses) {
    CAPTURE(static_cast<int>(loss));
    crash_everywhere(
        loss, 2, [](const fs::path&) {},
        [](const fs::path& runs, bool ended) {
          const std::optional<Checkpoint> newest = CheckpointFolder(runs).newest();
          CHECK((newest.has_value() || !ended));
          if (newest) check_contents(*newest);
          save(runs, posix_file_operations(), {4});
          CHECK(CheckpointFolder(runs).newest()->manifest.step == 4);
        });
  }
}

TEST_CASE("a crash during the replacement of a damaged checkpoint leaves the previous one loadable") {
  for (const Loss loss : kLosses) {
    CAPTURE(static_cast<int>(loss));
    crash_everywhere(
        loss, 2,
        [](const fs::path& runs) {
          save(runs, posix_file_operations(), {1, 2, 3});
          fs::resize_file(runs / "step-00000003" / "model.safetensors", 10);
        },
        [](const fs::path& runs, bool ended) {
          const std::optional<Checkpoint> newest = CheckpointFolder(runs).newest();
          REQUIRE(newest.has_value());
          check_contents(*newest);
          CHECK((newest->manifest.step == 3 || !ended));
          save(runs, posix_file_operations(), {4});
          CHECK(CheckpointFolder(runs).newest()->manifest.step == 4);
          for (const std::string& name : Scratch::names_in(runs)) CHECK(name.starts_with("step-"));
        });
  }
}

TEST_CASE("a crash during the clean-up of a crash is cleaned up too") {
  for (const Loss loss : kLosses) {
    CAPTURE(static_cast<int>(loss));
    crash_everywhere(
        loss, 2,
        [](const fs::path& runs) {
          save(runs, posix_file_operations(), {1, 2});
          for (const char* left : {".step-00000003.part", ".step-00000000.removed"}) {
            fs::create_directories(runs / left / "inner");
            std::ofstream(runs / left / "manifest.json") << "{}";
            std::ofstream(runs / left / "inner" / "a") << "half";
          }
        },
        [](const fs::path& runs, bool) {
          const std::optional<Checkpoint> newest = CheckpointFolder(runs).newest();
          REQUIRE(newest.has_value());
          check_contents(*newest);
          save(runs, posix_file_operations(), {4});
          for (const std::string& name : Scratch::names_in(runs)) CHECK(name.starts_with("step-"));
        });
  }
}

TEST_CASE("a crash during a replacement leaves the complete old or new file") {
  for (const Loss loss : kLosses) {
    CAPTURE(static_cast<int>(loss));
    std::uint64_t n = 0;
    for (bool ended = false; !ended; ++n) {
      CAPTURE(n);
      const Scratch scratch;
      const fs::path file = scratch.path / "model.safetensors";
      write_rank(file, 1, posix_file_operations());
      ended = survives(n, loss, scratch.path / "graveyard", [&](FileOperations& disk) { write_rank(file, 2, disk); });
      const Reader reader(file);
      const bool is_new = std::ranges::equal(reader.bytes("w"), counting(60, 2));
      CHECK((is_new || std::ranges::equal(reader.bytes("w"), counting(60, 1))));
      CHECK((is_new || !ended));
    }
    CHECK(n > 5);
  }
}

}  // namespace test_crash
