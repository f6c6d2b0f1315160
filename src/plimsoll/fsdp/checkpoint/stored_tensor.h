#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/fsdp/module_ref.h"
#include "plimsoll/fsdp/param/mesh_info.h"
#include "plimsoll/nn/optim/optimizer.h"

/// A model's and an optimizer's state as lists of tensors, each with its place in the whole: what is saved, loaded and
/// gathered (state_full.h, state_files.h, state_checkpoint.h).
namespace plimsoll::fsdp {

/// One tensor of the state, as this rank holds it.
struct StateTensor {
  std::string name;
  std::vector<std::string> other_names;  ///< Of a parameter that modules share; `name` is the first.
  std::vector<std::int64_t> sizes;       ///< Of the whole.
  at::Tensor local;                      ///< This rank's part. Of a module: its own memory, to be written into.
  MeshInfo mesh_info;                    ///< Over which ranks the whole is sharded. Null: every rank has it all.
  std::int64_t dim = 0;                  ///< Along which dimension,
  std::int64_t start = 0;                ///< and where in it this rank's part begins.
  at::Device device = at::kCPU;          ///< Where its process group takes tensors.

  bool is_sharded() const { return mesh_info != nullptr; }
  /// This rank's part of a whole tensor.
  at::Tensor part_of(const at::Tensor& whole) const {
    return is_sharded() ? whole.narrow(dim, start, local.size(dim)) : whole;
  }
};

using State = std::vector<StateTensor>;

/// Parameters, then buffers, of the module and those below it, each once, under its first name. Reshards the module
/// first. The names and their order are those of Module::named_parameters and named_buffers.
/// Throws in the middle of a forward, and for parameters without memory (on meta).
State model_state(ModuleRef module);

/// What the optimizer keeps of each parameter: "layers.0.weight.exp_avg". What has the parameter's shape is sharded as
/// it is. A parameter that was never stepped has nothing. Throws for a parameter that is not the module's.
State optimizer_state(ModuleRef module, const nn::Optimizer& optimizer);

/// Where a state tensor of an optimizer belongs.
struct OptimizerSlot {
  std::size_t parameter;  ///< Its index, counted through all groups.
  std::string name;       ///< "exp_avg"
};

/// The state that an optimizer would have if it kept what `entries` (whole sizes by name) has: with fresh memory on the
/// CPU to load into. `slots` gets as many entries. Names that belong to none of its parameters are left out.
struct WholeTensor {
  std::string name;
  std::vector<std::int64_t> sizes;
  at::ScalarType dtype;
};
State empty_optimizer_state(ModuleRef module, const nn::Optimizer& optimizer, const std::vector<WholeTensor>& entries,
                            std::vector<OptimizerSlot>& slots);

}  // namespace plimsoll::fsdp
