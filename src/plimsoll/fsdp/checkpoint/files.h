#pragma once

#include <cstdint>
#include <filesystem>

#include "plimsoll/base/bytes.h"
#include "plimsoll/fsdp/module_ref.h"
#include "plimsoll/nn/optim/optimizer.h"
#include "plimsoll/safetensors/file_operations.h"
#include "plimsoll/safetensors/header.h"

/// State in safetensors files that Hugging Face's tools can open too. load_state and load_optimizer_state
/// (full_state.h) read all of them, on any number of ranks. For a checkpoint of model, optimizer and step see
/// checkpoint.h.
///
/// REQUIRES: all ranks of the default group call this, with a folder that all of them see. If a rank cannot write, all
/// throw with that rank's message.
namespace plimsoll::fsdp {

enum class CheckpointForm : std::uint8_t {
  kFull,     ///< Rank 0 writes model.safetensors, or several files with an index if the state is large.
  kSharded,  ///< Each rank of one replica writes model-rank-00003-of-00008.safetensors: its shards and their offsets.
};

struct SaveOptions {
  CheckpointForm form = CheckpointForm::kFull;
  Bytes max_file_bytes = 5'000'000'000;               ///< Of a full file; a single larger tensor exceeds it.
  safetensors::Metadata metadata = {};                ///< Added to the metadata of each file.
  safetensors::FileOperations* operations = nullptr;  ///< Null: the real disk.
};

/// Writes parameters and buffers into `folder`, which is made if it is missing. In full form they are gathered and
/// written one at a time. Each file replaces a file of its name atomically. Throws if the folder has files of the model
/// with other names, which a later load would read instead.
void save_state(ModuleRef module, const std::filesystem::path& folder, const SaveOptions& options = {});

/// Writes the optimizer's state into optimizer….safetensors in the same way.
void save_optimizer_state(ModuleRef module, const nn::Optimizer& optimizer, const std::filesystem::path& folder,
                          const SaveOptions& options = {});

}  // namespace plimsoll::fsdp
