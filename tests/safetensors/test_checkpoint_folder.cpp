#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "plimsoll/base/errors.h"
#include "plimsoll/safetensors/checkpoint_folder.h"
#include "safetensors/checkpoint_contents.h"
#include "safetensors/scratch.h"

namespace test_checkpoint_folder {

using namespace plimsoll;
using namespace plimsoll::safetensors;
namespace fs = std::filesystem;
using Names = std::vector<std::string>;
using Steps = std::vector<std::uint64_t>;

namespace {

struct Runs : Scratch {
  fs::path runs = path / "a" / "runs";
  CheckpointFolder folder{runs, {.keep = 2}};

  void save(std::uint64_t step) { save_checkpoint(folder, step, posix_file_operations()); }
  void check_incomplete(std::uint64_t step, const std::string& why) {
    CHECK_THROWS_WITH_AS(folder.at(step), why.c_str(), FormatError);
    const std::optional<Checkpoint> newest = folder.newest();
    CHECK((!newest || newest->manifest.step < step));
  }
};

/// A disk on which one call fails.
class FullDisk final : public FileOperations {
 public:
  explicit FullDisk(int works) : works_(works) {}
  int create(const fs::path& path) override { return real_.create(path); }
  std::size_t write_some(int file, std::uint64_t offset, std::span<const std::byte> bytes,
                         const fs::path& path) override {
    if (works_-- == 0) throw SystemError("cannot write " + path.string(), ENOSPC);
    return real_.write_some(file, offset, bytes, path);
  }
  void sync(int file, const fs::path& path) override { real_.sync(file, path); }
  void close(int file) noexcept override { real_.close(file); }
  void sync_path(const fs::path& path) override { real_.sync_path(path); }
  void make_folder(const fs::path& path) override { real_.make_folder(path); }
  void rename(const fs::path& from, const fs::path& to) override { real_.rename(from, to); }
  void remove(const fs::path& path) override { real_.remove(path); }

 private:
  FileOperations& real_ = posix_file_operations();
  int works_;
};

}  // namespace

TEST_CASE_FIXTURE(Runs, "the newest is the last committed checkpoint, and two are kept") {
  CHECK_FALSE(folder.newest().has_value());
  CHECK(folder.steps().empty());
  CHECK_FALSE(fs::exists(runs));
  for (const std::uint64_t step : {0, 7, 120, 123'456'789}) {
    save(step);
    check_contents(folder.newest().value());
    CHECK(folder.newest()->manifest.step == step);
  }
  CHECK(names_in(runs) == Names{"step-00000120", "step-123456789"});
  CHECK(names_in(runs / "step-00000120") == Names{"manifest.json", "model.safetensors", "rank-1"});
  CHECK(folder.steps() == Steps{120, 123'456'789});
  CHECK_THROWS_WITH_AS(folder.at(7), (runs.string() + " has no checkpoint of step 7").c_str(), InvalidArgument);
}

TEST_CASE_FIXTURE(Runs, "a checkpoint does not exist before its commit, and leaves no files without one") {
  save(1);
  {
    const PendingCheckpoint pending = folder.begin(2);
    CHECK(pending.path() == folder.pending_path(2));
    CHECK(pending.step() == 2);
    write_rank(pending.path() / "model.safetensors", 2, posix_file_operations());
    CHECK(folder.newest()->manifest.step == 1);
    CHECK(names_in(runs) == Names{".step-00000002.part", "step-00000001"});
  }
  CHECK(names_in(runs) == Names{"step-00000001"});
}

TEST_CASE_FIXTURE(Runs, "a pending checkpoint can be moved, and is committed once") {
  PendingCheckpoint first = folder.begin(1);
  PendingCheckpoint pending = std::move(first);
  pending.commit();
  CHECK(folder.newest()->manifest == Manifest{1, {}, {}});
  CHECK_THROWS_WITH_AS(pending.commit(), "the checkpoint of step 1 is committed already; begin another",
                       InvalidArgument);
}

TEST_CASE_FIXTURE(Runs, "a step that is not after the newest is refused") {
  save(5);
  for (const std::uint64_t step : {5, 4}) {
    CHECK_THROWS_WITH_AS(folder.begin(step),
                         ("cannot begin a checkpoint of step " + std::to_string(step) + ": " + runs.string() +
                          "/step-00000005 exists; remove it and all later ones to go back")
                             .c_str(),
                         InvalidArgument);
  }
  CHECK_THROWS_WITH_AS(CheckpointFolder(runs, {.keep = 0}),
                       "a checkpoint folder keeps at least 1 checkpoint, and keep is 0", InvalidArgument);
}

TEST_CASE_FIXTURE(Runs, "begin removes the rests of a crash and keeps other files") {
  save(1);
  fs::create_directories(runs / ".step-00000002.part" / "rank-1");
  std::ofstream(runs / ".step-00000002.part" / "rank-1" / "half") << "x";
  fs::create_directories(runs / ".step-00000000.removed");
  std::ofstream(runs / "notes.txt") << "mine";
  fs::create_directories(runs / "step-1");  // Not a name of ours.
  fs::create_directories(runs / ".step-2.part");
  CHECK(folder.newest()->manifest.step == 1);
  save(2);
  save(3);
  CHECK(names_in(runs) == Names{".step-2.part", "notes.txt", "step-00000002", "step-00000003", "step-1"});
}

TEST_CASE_FIXTURE(Runs, "an incomplete checkpoint is refused by file name, and newest skips it") {
  save(1);
  save(2);
  const fs::path newest = runs / "step-00000002";
  const std::string subject = "the checkpoint " + newest.string() + " is not complete: ";
  SUBCASE("a file is missing") {
    fs::remove(newest / "rank-1" / "optimizer.safetensors");
    check_incomplete(2, subject + "its file 'rank-1/optimizer.safetensors' is missing");
  }
  SUBCASE("a file is too short") {
    const auto bytes = fs::file_size(newest / "model.safetensors");
    fs::resize_file(newest / "model.safetensors", bytes - 1);
    check_incomplete(2, subject + "its file 'model.safetensors' should have " + std::to_string(bytes) +
                            " bytes, and has " + std::to_string(bytes - 1));
  }
  SUBCASE("there is no manifest") {
    fs::remove(newest / "manifest.json");
    check_incomplete(2, subject + "manifest.json is missing or cannot be read");
  }
  SUBCASE("the manifest is empty") {
    fs::resize_file(newest / "manifest.json", 0);
    check_incomplete(2, subject + "manifest.json: its JSON is broken at byte 1");
  }
  SUBCASE("it was renamed") {
    fs::rename(newest, runs / "step-00000009");
    check_incomplete(
        9, "the checkpoint " + (runs / "step-00000009").string() + " has a manifest of step 2; it was renamed");
    save(9);
    check_contents(folder.at(9));
    return;
  }
  SUBCASE("it is replaced by the next of its step, and never counts among those that are kept") {
    fs::remove(newest / "manifest.json");
    save(2);
    check_contents(folder.at(2));
    fs::remove(newest / "manifest.json");
    save(3);
    CHECK(folder.steps() == Steps{1, 2, 3});
    save(4);
    CHECK(folder.steps() == Steps{3, 4});
    return;
  }
  CHECK(folder.newest()->manifest.step == 1);
}

TEST_CASE_FIXTURE(Runs, "commit refuses wrong entries by name, and works after they are fixed") {
  PendingCheckpoint pending = folder.begin(3);
  const std::string subject = "cannot commit the checkpoint of step 3: " + pending.path().string() + "/";
  {
    Writer writer(pending.path() / "model.safetensors", {});
    CHECK_THROWS_WITH_AS(pending.commit(),
                         doctest::Contains("part is still being written; finish every rank's files before commit()"),
                         InvalidArgument);
  }
  fs::create_symlink("/etc/passwd", pending.path() / "link");
  CHECK_THROWS_WITH_AS(pending.commit(), (subject + "link is neither a file nor a folder").c_str(), InvalidArgument);
  fs::remove(pending.path() / "link");
  std::ofstream(pending.path() / "manifest.json") << "{}";
  CHECK_THROWS_WITH_AS(
      pending.commit(),
      (subject + "manifest.json has the name of the manifest, which commit() writes; choose another").c_str(),
      InvalidArgument);
  fs::remove(pending.path() / "manifest.json");
  CHECK_THROWS_WITH_AS(pending.commit({{"k", "\xFF"}}),
                       "file names and metadata of a checkpoint are UTF-8: '\xFF' is not UTF-8", InvalidArgument);
  CHECK_FALSE(folder.newest().has_value());
  pending.commit();
  CHECK(folder.newest()->manifest.step == 3);
}

TEST_CASE_FIXTURE(Runs, "a full disk at any write leaves the previous checkpoint and no other files") {
  save(1);
  int writes = 0;
  for (bool done = false; !done; ++writes) {
    FullDisk disk(writes);
    CheckpointFolder on_disk(runs, {.keep = 2, .operations = &disk});
    try {
      save_checkpoint(on_disk, 2, disk);
      done = true;
    } catch (const SystemError& error) {
      CHECK(std::string(error.what()).ends_with("No space left on device"));
      CHECK(names_in(runs) == Names{"step-00000001"});
      check_contents(folder.newest().value());
    }
  }
  CHECK(writes == 9);  // Two files with a header and two pieces, a text, the manifest; and the round without a failure.
  check_contents(folder.at(2));
}

TEST_CASE_FIXTURE(Runs, "a folder's path may end with a slash or be relative") {
  CheckpointFolder slashed(runs.string() + "/");
  save_checkpoint(slashed, 1, posix_file_operations());
  check_contents(folder.newest().value());
  const fs::path before = fs::current_path();
  fs::current_path(path);
  CheckpointFolder relative("other");
  save_checkpoint(relative, 1, posix_file_operations());
  fs::current_path(before);
  check_contents(CheckpointFolder(path / "other").newest().value());
}

}  // namespace test_checkpoint_folder
