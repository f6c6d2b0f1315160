#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/fsdp/module_ref.h"
#include "plimsoll/fsdp/param/mesh_info.h"
#include "plimsoll/nn/optim/optimizer.h"
#include "plimsoll/safetensors/header.h"

/// The state of a model or an optimizer as a list of tensors, each with its position in the whole tensor. Saving,
/// loading and gathering use it (full_state.h, files.h, checkpoint.h).
namespace plimsoll::fsdp {

/// One tensor of the state, as this rank holds it.
struct StoredTensor {
  std::string name;
  std::vector<std::string> other_names;  ///< If modules share the parameter; `name` is the first.
  std::vector<std::int64_t> sizes;       ///< Of the whole.
  at::Tensor local;                      ///< This rank's part. For a module: its own memory, to be written.
  MeshInfo mesh_info;                    ///< The ranks over which the whole is sharded. Null: each rank has all of it.
  std::int64_t dim = 0;                  ///< The sharded dimension,
  std::int64_t start = 0;                ///< and the start of this rank's part in it.
  at::Device device = at::kCPU;          ///< The device on which its process group takes tensors.

  bool is_sharded() const { return mesh_info != nullptr; }
  /// This rank's part of a whole tensor.
  at::Tensor part_of(const at::Tensor& whole) const {
    return is_sharded() ? whole.narrow(dim, start, local.size(dim)) : whole;
  }
};

using StoredTensors = std::vector<StoredTensor>;

/// Parameters, then buffers, of the module and its submodules, each once, under its first name. Reshards the module
/// first. Names and order are those of Module::named_parameters and named_buffers. Throws during a forward, and for
/// parameters without memory (on meta).
StoredTensors model_state(ModuleRef module);

/// The optimizer's state for each parameter: "layers.0.weight.exp_avg". State of the parameter's shape is sharded like
/// the parameter. A parameter that was never stepped has no state. Throws for a parameter that the module does not
/// have.
StoredTensors optimizer_state(ModuleRef module, const nn::Optimizer& optimizer);

/// The place of a state tensor in an optimizer.
struct OptimizerSlot {
  std::size_t parameter;  ///< Index, counted through all groups.
  std::string name;       ///< "exp_avg"
};

/// The state of `optimizer` with the names and whole sizes of `entries`, in new CPU memory to load into. `slots` gets
/// one element for each. Names that match no parameter are left out.
struct WholeTensor {
  std::string name;
  std::vector<std::int64_t> sizes;
  at::ScalarType dtype;
};
StoredTensors empty_optimizer_state(ModuleRef module, const nn::Optimizer& optimizer,
                                    const std::vector<WholeTensor>& entries, std::vector<OptimizerSlot>& slots);

/// Throws, with the tensor's name, for dtypes that safetensors files cannot have (complex, quantised).
safetensors::Dtype to_file_dtype(at::ScalarType dtype, std::string_view tensor);
at::ScalarType to_torch_dtype(safetensors::Dtype dtype);

}  // namespace plimsoll::fsdp
