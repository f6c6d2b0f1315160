#pragma once

#include <cstdint>
#include <filesystem>

#include "plimsoll/base/bytes.h"
#include "plimsoll/fsdp/module_ref.h"
#include "plimsoll/nn/optim/optimizer.h"
#include "plimsoll/safetensors/file_operations.h"
#include "plimsoll/safetensors/header.h"

/// State in safetensors files that Hugging Face's tools open too. load_state and load_optimizer_state (state_full.h)
/// read them all, on any number of ranks. A checkpoint of model, optimizer and step in one is in state_checkpoint.h.
///
/// REQUIRES: all ranks of the default group call this, with a folder that all of them see. Where a rank cannot write,
/// all throw, with that rank's message.
namespace plimsoll::fsdp {

enum class StateForm : std::uint8_t {
  kFull,     ///< By rank 0: model.safetensors, or where that would be large, several files and an index of them.
  kSharded,  ///< By each rank of one replica: model-rank-00003-of-00008.safetensors, its shards and their places.
};

struct SaveOptions {
  StateForm form = StateForm::kFull;
  Bytes max_file_bytes = 5'000'000'000;  ///< Of a full file; a single tensor may be larger.
  safetensors::Metadata metadata = {};   ///< Into each file, besides what the format of torch's files asks for.
  safetensors::FileOperations* operations = nullptr;  ///< The disk; absent: the real one.
};

/// Parameters and buffers, into `folder`, which is made where it is missing. In full form they are gathered and written
/// one at a time. Each file replaces one of its name as a whole; throws where the folder has the model's files under
/// other names, which would be taken for it.
void save_state(ModuleRef module, const std::filesystem::path& folder, const SaveOptions& options = {});

/// The optimizer's state, into optimizer….safetensors likewise.
void save_optimizer_state(ModuleRef module, const nn::Optimizer& optimizer, const std::filesystem::path& folder,
                          const SaveOptions& options = {});

}  // namespace plimsoll::fsdp
