#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "plimsoll/fsdp/checkpoint/files.h"
#include "plimsoll/fsdp/checkpoint/full_state.h"
#include "plimsoll/safetensors/checkpoint_folder.h"

/// Training that can be stopped and taken up again:
///
///     std::uint64_t step = 0;
///     if (auto found = fsdp::load_checkpoint("runs/a", model, &optimizer)) step = found->step;
///     while (step < steps) {
///       …
///       if (++step % 100 == 0) fsdp::save_checkpoint("runs/a", step, model, &optimizer);
///     }
///
/// Folders are those of safetensors::CheckpointFolder: a checkpoint comes to be in one moment, when all of its files
/// are on the disk, and older ones are removed only after that. So a kill of any rank, or of all, at any point leaves
/// the previous one loadable. Loaded onto as many ranks, training goes on to the bit as if it had not stopped; onto
/// another number of them, every shard is read from the files that have its pieces.
///
/// REQUIRES: as state_files.h, all ranks call this, with a folder that all of them see.
namespace plimsoll::fsdp {

struct CheckpointOptions {
  StateForm form = StateForm::kSharded;  ///< Full ones take one rank's time to write, and one file to hand on.
  std::size_t keep = 2;                  ///< How many of the newest stay, this one included.
  Bytes max_file_bytes = SaveOptions().max_file_bytes;
  safetensors::Metadata metadata = {};  ///< Into the manifest: what a run wants to know of itself. Rank 0's is taken.
  safetensors::FileOperations* operations = nullptr;
};

/// The model, the optimizer's state where one is given, and the step. Where a rank fails, all throw with that rank's
/// message, and the folder is as it was. Throws where a checkpoint of this step or a later one is there.
void save_checkpoint(const std::filesystem::path& folder, std::uint64_t step, ModuleRef module,
                     const nn::Optimizer* optimizer, const CheckpointOptions& options = {});

struct LoadedCheckpoint {
  std::uint64_t step;
  safetensors::Metadata metadata;
};

struct LoadCheckpointOptions {
  std::optional<std::uint64_t> step = {};  ///< Absent: the newest complete one, as rank 0 sees it.
  bool strict = true;                      ///< As in LoadOptions, for the model.
};

/// Nothing where the folder has no complete checkpoint (and no step was asked for). Where a rank fails to read, all
/// throw with its message; the model may then be half loaded.
std::optional<LoadedCheckpoint> load_checkpoint(const std::filesystem::path& folder, ModuleRef module,
                                                nn::Optimizer* optimizer, const LoadCheckpointOptions& options = {});

}  // namespace plimsoll::fsdp
