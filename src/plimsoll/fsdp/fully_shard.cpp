#include "plimsoll/fsdp/fully_shard.h"

#include <c10/core/GradMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

#include "plimsoll/fsdp/fsdp_state.h"
#include "plimsoll/fsdp/module_tree.h"
#include "plimsoll/nn/optim/step_observable.h"

namespace plimsoll::fsdp {
namespace {

DeviceMesh default_mesh() {
  if (!distributed::is_initialized()) distributed::init_process_group();
  const auto group = distributed::default_group();
  const auto types = group->getDeviceTypes();
  const bool cuda = c10::impl::hasDeviceGuardImpl(at::kCUDA) &&
                    c10::impl::VirtualGuardImpl(at::kCUDA).deviceCount() > 0 &&
                    std::find(types.begin(), types.end(), at::Device(at::kCUDA)) != types.end();
  return DeviceMesh::init(cuda ? at::kCUDA : at::kCPU, {group->getSize()});
}

at::Device device_of(const DeviceMesh& mesh) {
  if (mesh.device_type() == at::kCPU) return at::kCPU;
  return c10::impl::VirtualGuardImpl(mesh.device_type()).getDevice();
}

void move_to_device(const ManagedTensors& tensors, at::Device device) {
  const auto move = [&](const at::Tensor& tensor) {
    if (tensor.device() == device || tensor.is_meta()) return;
    tensor.set_data(tensor.variable_data().to(device));
  };
  for (const auto& [param, name] : tensors.params) move(param);
  for (const at::Tensor& buffer : tensors.buffers) move(buffer);
}

struct ParamsOnMesh {
  MeshInfo mesh_info;
  std::vector<NamedParam> params;
};

// Parameters on different meshes communicate separately. Mirrors _init_param_group (torch 2.13).
std::vector<ParamsOnMesh> by_mesh(const std::vector<NamedParam>& params, const ShardPlacementFn& fn,
                                  const MeshInfo& default_mesh_info) {
  std::vector<ParamsOnMesh> groups;
  for (const NamedParam& param : params) {
    const MeshInfo mesh_info = resolve_shard_placement(fn, param.param, default_mesh_info).mesh_info;
    ParamsOnMesh* group = nullptr;
    for (ParamsOnMesh& known : groups) {
      if (known.mesh_info->shard_process_group != mesh_info->shard_process_group ||
          known.mesh_info->replicate_process_group != mesh_info->replicate_process_group) {
        continue;
      }
      TORCH_CHECK_VALUE(known.mesh_info == mesh_info, "shard_placement_fn returned two FSDPMeshInfo objects for ",
                        mesh_info->mesh.to_string(),
                        ". Make one with std::make_shared<FSDPMeshInfo>(mesh), and return it for each parameter.");
      group = &known;
    }
    if (group == nullptr) group = &groups.emplace_back(ParamsOnMesh{mesh_info, {}});
    group->params.push_back(param);
  }
  return groups;
}

std::vector<std::shared_ptr<FSDPParamGroup>> groups_of(const std::vector<NamedParam>& params,
                                                       const std::vector<torch::nn::Module*>& modules,
                                                       const MeshInfo& mesh_info, at::Device device,
                                                       const FullyShardOptions& options) {
  const MeshInfo post_forward_mesh_info = post_forward_mesh(options.reshard_after_forward, mesh_info);
  std::vector<std::shared_ptr<FSDPParamGroup>> groups;
  for (const auto& [group_mesh_info, group_params] : by_mesh(params, options.shard_placement_fn, mesh_info)) {
    const FSDPParam::Config config{
        .mesh_info = group_mesh_info,
        .post_forward_mesh_info = group_mesh_info == mesh_info
                                      ? post_forward_mesh_info
                                      : post_forward_mesh(options.reshard_after_forward, group_mesh_info),
        .device = device,
        .shard_placement_fn = &options.shard_placement_fn,
        .mp_policy = options.mp_policy,
        .offload_policy = options.offload_policy,
    };
    groups.push_back(std::make_shared<FSDPParamGroup>(group_params, modules, config));
  }
  return groups;
}

// Checks before an optimizer's step that its parameters may be stepped.
void watch_optimizers() {
  static const nn::HookHandle handle = nn::register_global_step_pre_hook([](nn::StepObservable& optimizer) {
    for (const at::Tensor& parameter : optimizer.parameters()) {
      if (const FSDPParam* const param = managed(parameter)) param->check_steppable();
    }
  });
  (void)handle;
}

}  // namespace

FSDPModule fully_shard(ModuleRef module, const FullyShardOptions& options) {
  return fully_shard(std::vector<ModuleRef>{module}, options);
}

FSDPModule fully_shard(std::vector<ModuleRef> given, const FullyShardOptions& options) {
  TORCH_CHECK_VALUE(!given.empty(), "Expected at least one module to shard, found none.");
  std::vector<torch::nn::Module*> modules;
  for (const ModuleRef& module : given) {
    TORCH_CHECK_VALUE(std::find(modules.begin(), modules.end(), &*module) == modules.end(), "The same ",
                      nn::class_name(*module), " is twice in the list of modules to shard.");
    modules.push_back(&*module);
  }
  modules = root_modules(modules);
  for (torch::nn::Module* module : modules) {
    nn::require_hooks(*module);
    TORCH_CHECK_VALUE(FSDPState::of(*module) == nullptr, "fully_shard was applied to this ", nn::class_name(*module),
                      " before. Apply it once to each module, to submodules first.");
  }

  const DeviceMesh mesh = options.mesh ? *options.mesh : default_mesh();
  const auto mesh_info = std::make_shared<FSDPMeshInfo>(mesh);
  const at::Device device = device_of(mesh);
  watch_optimizers();

  const at::NoGradGuard no_grad;
  const auto tensors = managed_tensors(managed_modules(modules, options.ignored_params), options.ignored_params);
  move_to_device(tensors, device);
  const auto state =
      std::make_shared<FSDPState>(modules, device, options.mp_policy, options.reshard_after_forward.is_default());
  // The whole parameters are freed after all of them are sharded, last to first.
  std::vector<at::Tensor> whole;
  for (const auto& [param, name] : tensors.params) whole.push_back(param.variable_data());
  try {
    state->fsdp_param_groups = groups_of(tensors.params, modules, mesh_info, device, options);
  } catch (...) {
    // Restores the whole parameters, so that the user can fix the error and shard again.
    for (std::size_t i = 0; i < whole.size(); ++i) tensors.params[i].param.set_data(whole[i]);
    throw;
  }
  state->attach();
  while (!whole.empty()) whole.pop_back();
  return FSDPModule(*modules[0]);
}

}  // namespace plimsoll::fsdp
