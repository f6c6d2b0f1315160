#include "plimsoll/distributed/local_device.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "plimsoll/distributed/process_group.h"
#include "plimsoll/distributed/rendezvous.h"

namespace plimsoll::distributed {
namespace {

bool is_fake(const ProcessGroup& group) {
  return group->hasBackends() && group->getDefaultBackend()->getBackendName() == "fake";
}

}  // namespace

// Mirrors DeviceMesh._setup_world_group_and_device (torch 2.13), without its warning if LOCAL_RANK is missing.
void choose_local_device(c10::DeviceType device_type) {
  if (device_type != c10::DeviceType::CUDA || !at::globalContext().hasCUDA() || is_fake(default_group())) {
    return;
  }
  const c10::impl::VirtualGuardImpl guard(device_type);
  const int devices = guard.deviceCount();
  for (int device = 0; device < devices; ++device) {
    if (at::detail::getCUDAHooks().hasPrimaryContext(static_cast<c10::DeviceIndex>(device))) {
      return;
    }
  }
  const auto local_rank = number_of_environment("LOCAL_RANK");
  TORCH_CHECK_VALUE(!local_rank || (*local_rank >= 0 && *local_rank < devices), "DeviceMesh: LOCAL_RANK is ",
                    local_rank.value_or(0), ", but this host has ", devices,
                    " devices. Start at most one rank for each device, or choose the device before the mesh is made.");
  const int world_size = get_world_size();
  TORCH_CHECK_VALUE(
      local_rank || world_size <= devices || world_size % devices == 0, "DeviceMesh: cannot choose one of ", devices,
      " devices for this rank: LOCAL_RANK is not set, and ", world_size,
      " ranks do not fill hosts like this one. Set LOCAL_RANK (torchrun does), or choose the device before "
      "the mesh is made.");
  const int chosen = local_rank.value_or(get_rank() % devices);
  guard.setDevice(c10::Device(device_type, static_cast<c10::DeviceIndex>(chosen)));
}

}  // namespace plimsoll::distributed
