#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "plimsoll/fsdp/module_ref.h"
#include "plimsoll/nn/optim/optimizer.h"

/// Whole state on rank 0, and back; and state from files.
///
///     auto state = fsdp::full_state(model);                      // on rank 0: all of it; elsewhere nothing
///     fsdp::load_full_state(model, rank == 0 ? state : fsdp::TensorMap());
///     fsdp::load_state(model, "/models/llama-3-8b");             // each rank reads its own shards
///
/// Values are written into the parameters' own memory, cast to their dtype. Modules are resharded first. All of it
/// works between steps and before the first forward; on models built on meta after fsdp::to_empty. Before a name is
/// known to fit, nothing is written.
///
/// A parameter that modules share goes by its first name; what stands under its other names is taken too, where the
/// first is missing. Of what is not sharded (buffers, ignored parameters) rank 0's values are taken.
///
/// REQUIRES: all ranks of the default group call this with the same model; without a group the process is rank 0.
namespace plimsoll::fsdp {

using TensorMap = std::map<std::string, at::Tensor>;

/// Parameters and buffers by their names, on the CPU, as stored. One parameter is gathered at a time.
TensorMap full_state(ModuleRef module);

/// What the optimizer keeps: "layers.0.weight.exp_avg". Options are no part of it.
TensorMap full_optimizer_state(ModuleRef module, const nn::Optimizer& optimizer);

struct LoadOptions {
  bool strict = true;  ///< Where false, missing and unexpected names are returned instead of thrown.
};

struct LoadResult {
  std::vector<std::string> missing;     ///< Of the module; they keep their values.
  std::vector<std::string> unexpected;  ///< In the source; not read.
};

/// From a map on rank 0; those of other ranks are not looked at. No other rank holds more than one whole tensor at a
/// time. Throws, on all ranks, where a shape differs, and where `strict`, for missing and unexpected names.
LoadResult load_full_state(ModuleRef module, const TensorMap& state, LoadOptions options = {});

/// From a safetensors file, an index or a folder, whole or sharded over any number of ranks (see StateSource). Every
/// rank reads no more than its shards, and nothing is communicated. Throws as load_full_state does, on its own rank.
LoadResult load_state(ModuleRef module, const std::filesystem::path& path, LoadOptions options = {});

/// The optimizer's from a file or a folder, likewise. It must be of the kind and options that the state was saved from;
/// options are not changed. Where not `strict`, state of parameters that it does not have is passed over.
void load_optimizer_state(ModuleRef module, nn::Optimizer& optimizer, const std::filesystem::path& path,
                          LoadOptions options = {});

}  // namespace plimsoll::fsdp
