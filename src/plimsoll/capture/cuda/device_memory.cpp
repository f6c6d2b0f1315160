#include "plimsoll/capture/device_memory.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

namespace plimsoll::capture {

std::optional<Bytes> taken_of_device(c10::Device device) {
  if (!device.is_cuda() || !device.has_index() || device.index() >= c10::cuda::device_count()) return std::nullopt;
  const auto [free, total] = c10::cuda::CUDACachingAllocator::get()->getMemoryInfo(device.index());
  return total - free;
}

}  // namespace plimsoll::capture
