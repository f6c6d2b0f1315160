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
///     runs/a/.step-00000140.part/…           a checkpoint in progress, or the rest of a crash
///
/// A checkpoint is written under its hidden name and synced to the disk. The rename that follows makes it exist. Older
/// checkpoints are removed only after the rename. So the newest complete checkpoint can be loaded at any moment, even
/// if the process is killed or the power fails.
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
  std::size_t keep = 2;  ///< The number of newest checkpoints that commit() keeps, including its own. At least 1.
  FileOperations* operations = nullptr;  ///< Null: the real disk. REQUIRES: outlives the folder.
};

/// A checkpoint in progress. The destructor removes its files unless commit() was called.
class PendingCheckpoint {
 public:
  PendingCheckpoint(PendingCheckpoint&& other) noexcept;
  PendingCheckpoint& operator=(PendingCheckpoint&&) = delete;
  ~PendingCheckpoint();

  std::uint64_t step() const { return step_; }
  /// The folder for files and for folders with files.
  const std::filesystem::path& path() const { return path_; }

  /// Makes it the newest checkpoint. On return the files of all ranks are on the disk, and only the newest `keep`
  /// checkpoints remain. Throws InvalidArgument if a file is incomplete (a Writer without finish()) or an entry is not
  /// a file; SystemError if the disk fails. If only the removal of older checkpoints fails, newest() has the new
  /// checkpoint. REQUIRES: every rank has finished its files.
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

/// Has no state: any number of objects, in any process, may read one folder.
/// REQUIRES: one job at a time writes, one checkpoint at a time. A pending checkpoint is committed or destroyed before
/// the next begin().
class CheckpointFolder {
 public:
  /// Does not touch the disk. Throws InvalidArgument if `options.keep` is 0.
  explicit CheckpointFolder(std::filesystem::path folder, CheckpointFolderOptions options = {});

  /// The complete checkpoint with the highest step. Absent if no checkpoint is complete or the folder does not exist.
  std::optional<Checkpoint> newest() const;
  /// The checkpoint of one step. Throws InvalidArgument if it does not exist, FormatError if it is incomplete.
  Checkpoint at(std::uint64_t step) const;
  /// All steps, of complete and incomplete checkpoints, in ascending order.
  std::vector<std::uint64_t> steps() const;

  /// Removes the rests of crashes and makes an empty folder for the checkpoint of `step`, and missing parent folders.
  /// One rank calls it. Throws InvalidArgument if a complete checkpoint of this step or a later one exists: remove it
  /// to go back.
  PendingCheckpoint begin(std::uint64_t step);
  /// The folder of the checkpoint of `step` between begin() and commit(), for ranks that do not call begin().
  std::filesystem::path pending_path(std::uint64_t step) const;

 private:
  std::filesystem::path folder_;
  CheckpointFolderOptions options_;
};

}  // namespace plimsoll::safetensors
