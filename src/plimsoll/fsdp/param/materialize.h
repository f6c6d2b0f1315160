#pragma once

#include <c10/core/Device.h>

#include "plimsoll/fsdp/module_ref.h"

/// Large models are built on the meta device, where they take no memory, sharded there, and then given memory for the
/// shards alone:
///
///     Model model = nullptr;
///     { nn::DeviceScope meta(at::kMeta); model = Model(config); }
///     fsdp::fully_shard(model, …);
///     fsdp::to_empty(model, device);
///     // then values: fsdp::load_full_state, or the model's own initialisation of each shard
namespace plimsoll::fsdp {

/// Gives all parameters and buffers of the module and of those below it memory on the device, with undefined contents:
/// sharded ones memory for this rank's shard. The counterpart of torch.nn.Module.to_empty. With CPUOffloadPolicy the
/// device is the CPU.
void to_empty(ModuleRef module, at::Device device);

/// Takes up data that sharded parameters were given by other means than writing into them (set_data, Module::to).
/// Before the first forward this happens by itself. Throws where the shape is not that of the shard.
void reset_sharded_params(ModuleRef module);

}  // namespace plimsoll::fsdp
