#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "plimsoll/fsdp/module_ref.h"
#include "plimsoll/nn/optim/optimizer.h"

/// Whole state on rank 0 and back, and state from files.
///
///     auto state = fsdp::full_state(model);                      // rank 0: all of it; other ranks: empty
///     fsdp::load_full_state(model, rank == 0 ? state : fsdp::TensorMap());
///     fsdp::load_state(model, "/models/llama-3-8b");             // each rank reads its own shards
///
/// Values are copied into the parameters' own memory and cast to their dtype. Modules are resharded first. All calls
/// work between steps and before the first forward; for models built on meta, after fsdp::to_empty. Nothing is written
/// before all names are checked.
///
/// A parameter that modules share has its first name. If the source does not have that name, the other names are tried.
/// For tensors that are not sharded (buffers, ignored parameters), rank 0's values are used.
///
/// REQUIRES: all ranks of the default group call this with the same model; without a group the process is rank 0.
namespace plimsoll::fsdp {

using TensorMap = std::map<std::string, at::Tensor>;

/// Parameters and buffers by name, on the CPU, in their own dtypes. Gathers one parameter at a time.
TensorMap full_state(ModuleRef module);

/// The optimizer's state tensors: "layers.0.weight.exp_avg". Does not contain options.
TensorMap full_optimizer_state(ModuleRef module, const nn::Optimizer& optimizer);

struct LoadOptions {
  bool strict = true;  ///< If false, missing and unexpected names are returned, not thrown.
};

struct LoadResult {
  std::vector<std::string> missing;     ///< In the module, not in the source; they keep their values.
  std::vector<std::string> unexpected;  ///< In the source, not in the module; not read.
};

/// Loads rank 0's map; the maps of other ranks are ignored. No other rank holds more than one whole tensor at a time.
/// Throws on all ranks if a shape differs, or (if `strict`) if names are missing or unexpected.
LoadResult load_full_state(ModuleRef module, const TensorMap& state, LoadOptions options = {});

/// Loads a safetensors file, an index or a folder, whole or sharded over any number of ranks (see CheckpointSource).
/// Each rank reads only its shards, without communication. Throws like load_full_state, but only on the rank that
/// fails.
LoadResult load_state(ModuleRef module, const std::filesystem::path& path, LoadOptions options = {});

/// Loads the optimizer's state from a file or a folder in the same way. REQUIRES: the optimizer has the class and
/// options of the saved one; options are not loaded. If not `strict`, state of unknown parameters is ignored.
void load_optimizer_state(ModuleRef module, nn::Optimizer& optimizer, const std::filesystem::path& path,
                          LoadOptions options = {});

}  // namespace plimsoll::fsdp
