#include "plimsoll/fsdp/checkpoint/stored_tensor.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <array>
#include <unordered_map>

#include "plimsoll/fsdp/fsdp_state.h"
#include "plimsoll/fsdp/module_tree.h"
#include "plimsoll/fsdp/param/fsdp_param.h"

namespace plimsoll::fsdp {
namespace {

// In the order of safetensors::Dtype.
constexpr std::array<at::ScalarType, safetensors::kDtypes> kTorchDtypes = {
    at::kBool,     at::kByte, at::kChar,   at::kFloat8_e5m2, at::kFloat8_e4m3fn, at::kShort, at::kUInt16, at::kHalf,
    at::kBFloat16, at::kInt,  at::kUInt32, at::kFloat,       at::kDouble,        at::kLong,  at::kUInt64};

std::string joined(const std::string& path, const std::string& name) { return path.empty() ? name : path + "." + name; }

// Mirrors the state_dict pre-hook of FSDPState (torch 2.13).
void reshard(const std::vector<NamedModule>& modules) {
  for (const auto& [path, module] : modules) {
    const auto state = FSDPState::of(*module);
    if (!state) continue;
    for (const auto& group : state->fsdp_param_groups) group->reshard();
  }
}

void place(StoredTensor& entry, const at::Tensor& param) {
  const FSDPParam* const managed_param = managed(param);
  if (managed_param == nullptr) {
    entry.sizes = param.sizes().vec();
    return;
  }
  TORCH_CHECK(param.sizes() == managed_param->sharded_size(), "The parameter '", entry.name, "' has shape ",
              param.sizes(), ", but this rank's shard has ", managed_param->sharded_size(),
              ": its module is in the middle of a forward or backward. State is saved and loaded between steps.");
  const FSDPMeshInfo& mesh_info = *managed_param->mesh_info();
  entry.sizes = managed_param->orig_size().vec();
  entry.dim = managed_param->shard_dim();
  const auto size = entry.sizes[static_cast<std::size_t>(entry.dim)];
  entry.start = chunk_range(size, mesh_info.shard_mesh_size, mesh_info.shard_mesh_rank).start;
  entry.mesh_info = managed_param->mesh_info();
  entry.device = managed_param->device();
}

StoredTensor entry_of(const at::Tensor& tensor, std::string name) {
  StoredTensor entry;
  entry.name = std::move(name);
  TORCH_CHECK(!tensor.is_meta(), "'", entry.name,
              "' is on the meta device and has no values to save or load. Call fsdp::to_empty(module, device) first.");
  place(entry, tensor);
  entry.local = tensor.detach();
  return entry;
}

/// Collects tensors, each once, under the first of their names.
class Entries {
 public:
  void add(const at::Tensor& tensor, std::string name) {
    if (!tensor.defined()) return;
    const auto [found, is_new] = index_.try_emplace(tensor.unsafeGetTensorImpl(), state_.size());
    if (is_new) {
      state_.push_back(entry_of(tensor, std::move(name)));
    } else {
      state_[found->second].other_names.push_back(std::move(name));
    }
  }
  const StoredTensor* find(const at::Tensor& tensor) const {
    const auto found = index_.find(tensor.unsafeGetTensorImpl());
    return found == index_.end() ? nullptr : &state_[found->second];
  }
  StoredTensors take() { return std::move(state_); }

 private:
  StoredTensors state_;
  std::unordered_map<const c10::TensorImpl*, std::size_t> index_;
};

Entries parameters_of(const std::vector<NamedModule>& modules) {
  reshard(modules);
  Entries entries;
  for (const auto& [path, module] : modules) {
    for (const auto& param : module->named_parameters(/*recurse=*/false)) {
      entries.add(param.value(), joined(path, param.key()));
    }
  }
  return entries;
}

const StoredTensor& parameter_of(const Entries& entries, const at::Tensor& param, std::size_t index) {
  const StoredTensor* const found = entries.find(param);
  TORCH_CHECK_VALUE(found != nullptr, "Parameter ", index, " of the optimizer, of shape ", param.sizes(),
                    ", is not a parameter of the module. Pass the module with the optimizer's parameters.");
  return *found;
}

}  // namespace

StoredTensors model_state(ModuleRef module) {
  const auto modules = named_modules(*module);
  Entries entries = parameters_of(modules);
  for (const auto& [path, below] : modules) {
    for (const auto& buffer : below->named_buffers(/*recurse=*/false)) {
      entries.add(buffer.value(), joined(path, buffer.key()));
    }
  }
  return entries.take();
}

StoredTensors optimizer_state(ModuleRef module, const nn::Optimizer& optimizer) {
  const Entries parameters = parameters_of(named_modules(*module));
  const auto params = optimizer.parameters();
  StoredTensors state;
  for (const auto& [index, name, tensor] : optimizer.export_state().entries) {
    const StoredTensor& param = parameter_of(parameters, params[index], index);
    StoredTensor entry;
    entry.name = joined(param.name, name);
    entry.sizes = tensor.sizes().vec();
    if (param.is_sharded() && tensor.sizes() == param.local.sizes()) {
      entry = param;
      entry.name = joined(param.name, name);
      entry.other_names.clear();
    }
    entry.local = tensor.detach();
    state.push_back(std::move(entry));
  }
  return state;
}

StoredTensors empty_optimizer_state(ModuleRef module, const nn::Optimizer& optimizer,
                                    const std::vector<WholeTensor>& entries, std::vector<OptimizerSlot>& slots) {
  const Entries parameters = parameters_of(named_modules(*module));
  const auto params = optimizer.parameters();
  std::unordered_map<std::string, std::size_t> by_name;
  for (std::size_t index = 0; index < params.size(); ++index) {
    by_name.emplace(parameter_of(parameters, params[index], index).name, index);
  }
  StoredTensors state;
  slots.clear();
  for (const WholeTensor& whole : entries) {
    const auto dot = whole.name.rfind('.');  // State names contain no dot; parameter names can.
    const auto found = dot == std::string::npos ? by_name.end() : by_name.find(whole.name.substr(0, dot));
    if (found == by_name.end()) continue;
    const StoredTensor& param = parameter_of(parameters, params[found->second], found->second);
    StoredTensor entry;
    std::vector<std::int64_t> local_sizes = whole.sizes;
    if (param.is_sharded() && whole.sizes == param.sizes) {
      entry = param;
      entry.other_names.clear();
      local_sizes = param.local.sizes().vec();
    }
    entry.name = whole.name;
    entry.sizes = whole.sizes;
    entry.local = at::empty(local_sizes, at::TensorOptions().dtype(whole.dtype));
    state.push_back(std::move(entry));
    slots.push_back({found->second, whole.name.substr(dot + 1)});
  }
  return state;
}

safetensors::Dtype to_file_dtype(at::ScalarType dtype, std::string_view tensor) {
  for (std::size_t i = 0; i < kTorchDtypes.size(); ++i) {
    if (kTorchDtypes[i] == dtype) return static_cast<safetensors::Dtype>(i);
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "'", tensor, "' is ", dtype,
      ", which safetensors files cannot hold. Keep it as a real tensor with another dimension.");
}

at::ScalarType to_torch_dtype(safetensors::Dtype dtype) { return kTorchDtypes[static_cast<std::size_t>(dtype)]; }

}  // namespace plimsoll::fsdp
