#pragma once

#include <c10/core/Device.h>

#include "plimsoll/fsdp/module_ref.h"

/// Large models are built on the meta device without memory, sharded there, and then get memory only for the shards:
///
///     Model model = nullptr;
///     { nn::DeviceScope meta(at::kMeta); model = Model(config); }
///     fsdp::fully_shard(model, …);
///     fsdp::to_empty(model, device);
///     // then values: fsdp::load_full_state, or the model's own initialisation of each shard
namespace plimsoll::fsdp {

/// Allocates all parameters and buffers of the module and its submodules on the device, with undefined contents; for
/// sharded parameters, this rank's shard. Counterpart of torch.nn.Module.to_empty. With CPUOffloadPolicy the device is
/// the CPU.
void to_empty(ModuleRef module, at::Device device);

/// Adopts data that sharded parameters got other than by writes (set_data, Module::to). The first forward does this
/// too. Throws if the shape is not the shard's.
void reset_sharded_params(ModuleRef module);

}  // namespace plimsoll::fsdp
