#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "plimsoll/fsdp/checkpoint/files.h"
#include "plimsoll/fsdp/checkpoint/full_state.h"
#include "plimsoll/safetensors/checkpoint_folder.h"

/// Training that can be stopped and resumed:
///
///     std::uint64_t step = 0;
///     if (auto found = fsdp::load_checkpoint("runs/a", model, &optimizer)) step = found->step;
///     while (step < steps) {
///       …
///       if (++step % 100 == 0) fsdp::save_checkpoint("runs/a", step, model, &optimizer);
///     }
///
/// The folder is a safetensors::CheckpointFolder. A checkpoint becomes visible atomically, when all of its files are on
/// the disk, and older ones are removed only after that. So if any rank is killed at any point, the previous checkpoint
/// stays loadable. On the same number of ranks, resumed training is equal to the bit. On another number, each shard is
/// read from the files that have its pieces.
///
/// REQUIRES: as in files.h, all ranks call this, with a folder that all of them see.
namespace plimsoll::fsdp {

struct CheckpointOptions {
  CheckpointForm form = CheckpointForm::kSharded;  ///< Full ones are one file, but one rank writes all of it.
  std::size_t keep = 2;                            ///< Number of newest checkpoints to keep, with this one.
  Bytes max_file_bytes = SaveOptions().max_file_bytes;
  safetensors::Metadata metadata = {};  ///< Free text for the manifest. Rank 0's is written.
  safetensors::FileOperations* operations = nullptr;
};

/// Saves the model, the optimizer's state (if not null) and the step. If a rank fails, all throw with that rank's
/// message, and the folder is unchanged. Throws if the folder has a checkpoint of this step or a later one.
void save_checkpoint(const std::filesystem::path& folder, std::uint64_t step, ModuleRef module,
                     const nn::Optimizer* optimizer, const CheckpointOptions& options = {});

struct LoadedCheckpoint {
  std::uint64_t step;
  safetensors::Metadata metadata;
};

struct LoadCheckpointOptions {
  std::optional<std::uint64_t> step = {};  ///< Absent: the newest complete one that rank 0 sees.
  bool strict = true;                      ///< As in LoadOptions, for the model.
};

/// Empty if the folder has no complete checkpoint (and `step` is absent). If a rank fails to read, all throw with its
/// message; the model may then be partly loaded.
std::optional<LoadedCheckpoint> load_checkpoint(const std::filesystem::path& folder, ModuleRef module,
                                                nn::Optimizer* optimizer, const LoadCheckpointOptions& options = {});

}  // namespace plimsoll::fsdp
