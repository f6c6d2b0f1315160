#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "plimsoll/safetensors/file_operations.h"
#include "plimsoll/safetensors/manifest.h"

/// A folder of numbered checkpoints that survives a crash at any moment:
///
///     runs/a/step-00000100/manifest.json, model.safetensors, …
///     runs/a/step-00000120/…                 the newest
///     runs/a/.step-00000140.part/…           being written, or left by a crash
///
/// A checkpoint is written under its hidden name, synced to the disk, and renamed: the rename is the one moment at
/// which it comes to be. Only after that are older ones removed. So the newest complete checkpoint is always loadable,
/// whether the process is killed or the power fails.
///
/// Several ranks write one checkpoint:
///
///     rank 0:  auto pending = folder.begin(step);                  others:  –
///     all:     barrier
///     all:     write files of different names into folder.pending_path(step), finish them
///     all:     barrier
///     rank 0:  pending.commit({{"world_size", "8"}});

namespace plimsoll::safetensors {

/// A complete checkpoint.
struct Checkpoint {
  std::filesystem::path path;
  Manifest manifest;
};

struct CheckpointFolderOptions {
  std::size_t keep = 2;  ///< How many of the newest stay when another is committed, that one included. At least 1.
  FileOperations* operations = nullptr;  ///< The disk; absent: the real one. Outlives the folder.
};

/// A checkpoint on its way. Destroyed before commit(), it removes what was written.
class PendingCheckpoint {
 public:
  PendingCheckpoint(PendingCheckpoint&& other) noexcept;
  PendingCheckpoint& operator=(PendingCheckpoint&&) = delete;
  ~PendingCheckpoint();

  std::uint64_t step() const { return step_; }
  /// The folder to write files into, and folders with files.
  const std::filesystem::path& path() const { return path_; }

  /// Makes it the newest: when this returns, its files, whoever wrote them, are on the disk, and those beyond the
  /// newest `keep` are gone. Throws InvalidArgument where a file is still being written (a Writer without finish()),
  /// something is no file, or the disk fails. A failure to remove older checkpoints is thrown too: the new one is in
  /// place then, which newest() tells. REQUIRES: every rank has finished its files.
  void commit(const Metadata& metadata = {});

 private:
  friend class CheckpointFolder;
  PendingCheckpoint(std::filesystem::path folder, std::uint64_t step, const CheckpointFolderOptions& options);

  std::filesystem::path folder_;
  std::uint64_t step_;
  CheckpointFolderOptions options_;
  std::filesystem::path path_;
  bool pending_ = false;
};

/// Holds no state: any number may look at one folder, in any process.
/// REQUIRES: one job at a time writes, and one checkpoint at a time: a pending one is committed or destroyed before the
/// next begin().
class CheckpointFolder {
 public:
  /// Touches nothing. Throws InvalidArgument where `options.keep` is 0.
  explicit CheckpointFolder(std::filesystem::path folder, CheckpointFolderOptions options = {});

  /// The complete checkpoint of the highest step; those that are not complete are passed over. Absent where there is
  /// none, or no folder.
  std::optional<Checkpoint> newest() const;
  /// The checkpoint of one step. Throws InvalidArgument where there is none, FormatError where it is not complete.
  Checkpoint at(std::uint64_t step) const;
  /// All that are there, complete or not, in ascending order.
  std::vector<std::uint64_t> steps() const;

  /// Removes what crashes have left, and makes a fresh folder for the checkpoint of `step`, and the folder itself where
  /// it is missing. Called by one rank. Throws InvalidArgument where a complete checkpoint of this step or a later one
  /// is there: remove it to go back.
  PendingCheckpoint begin(std::uint64_t step);
  /// Where the checkpoint of `step` is written between begin() and commit(), for ranks that did not call begin().
  std::filesystem::path pending_path(std::uint64_t step) const;

 private:
  std::filesystem::path folder_;
  CheckpointFolderOptions options_;
};

}  // namespace plimsoll::safetensors
