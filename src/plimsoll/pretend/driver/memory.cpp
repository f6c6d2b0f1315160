// The driver's plain memory calls and pointer attributes.

#include <algorithm>
#include <cstring>
#include <functional>

#include "plimsoll/pretend/driver/driver.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::driver;

PLIMSOLL_API CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto address = ensure_context().memory.allocate(bytes);
  if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
  *pointer = *address;
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuMemFree_v2(CUdeviceptr pointer) {
  Device* const device = device_of(pointer);
  return pointer == 0 || (device != nullptr && device->memory.free(pointer)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

PLIMSOLL_API CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  const MemoryCounters counters = ensure_context().memory.counters();
  *free = counters.capacity - counters.used;
  *total = counters.capacity;
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  const auto start = machine().host().allocate(bytes, HostMemory::Kind::kPinned, flags, current_device());
  if (!start) return CUDA_ERROR_OUT_OF_MEMORY;
  *pointer = *start;
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuMemFreeHost(void* pointer) {
  return machine().host().free(pointer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

PLIMSOLL_API CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr pointer) {
  Device* const device = device_of(pointer);
  const auto range = device != nullptr ? device->memory.range_of(pointer) : std::nullopt;
  if (!range) return CUDA_ERROR_INVALID_VALUE;
  if (base != nullptr) *base = range->start;
  if (bytes != nullptr) *bytes = range->bytes;
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuPointerGetAttribute(void* out, CUpointer_attribute attribute, CUdeviceptr pointer) {
  Device* const device = device_of(pointer);
  const auto host = machine().host().find(reinterpret_cast<const void*>(pointer));
  if (device == nullptr && !host) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(out) = device != nullptr ? device->index : host->device;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(out) = device != nullptr ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(out) = context_of(device != nullptr ? device->index : host->device);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(out) = pointer;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (device != nullptr) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<CUdeviceptr*>(out) = pointer;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(out) = host && host->kind == HostMemory::Kind::kManaged ? 1 : 0;
      return CUDA_SUCCESS;
    default:
      return static_cast<CUresult>(unpretended("cuPointerGetAttribute with this attribute", CUDA_ERROR_NOT_SUPPORTED));
  }
}

namespace {

/// Writes `count` times `value` on a stream. Device memory: reports the fill. Host memory: writes the values.
template <typename Value>
CUresult fill(const char* function, CUdeviceptr destination, Value value, size_t count, CUstream handle) {
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  auto* const start = reinterpret_cast<Value*>(destination);
  const bool on_host = machine().host().find(start).has_value();
  if (!on_host && device_of(destination) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Event event{.kind = Happening::kFill, .name = function, .bytes = count * sizeof(Value), .destination = start};
  const auto set = [=] { std::fill_n(start, count, value); };
  machine().enqueue(*stream, event, on_host ? std::function<void()>(set) : nullptr);
  return CUDA_SUCCESS;
}

/// Pinned host memory has a device address too.
CUresult copy_async(const char* function, void* destination, const void* source, size_t bytes, CUstream handle) {
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (is_host(destination) && !is_host(source)) {
    enqueue_read_back(function, source, {destination, bytes, bytes}, handle);
  } else {
    const Event event{
        .kind = Happening::kCopy, .name = function, .bytes = bytes, .source = source, .destination = destination};
    const auto move = [=] { std::memmove(destination, source, bytes); };
    machine().enqueue(*stream, event, is_host(destination) ? std::function<void()>(move) : nullptr);
  }
  return CUDA_SUCCESS;
}

/// A copy for which the host waits.
CUresult copy(const char* function, void* destination, const void* source, size_t bytes) {
  const int device = ensure_context().index;
  if (machine().forbid_in_captures_of(device)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  const CUresult result = copy_async(function, destination, source, bytes, nullptr);
  machine().synchronize(device, function);
  return result;
}

void* address(CUdeviceptr pointer) { return reinterpret_cast<void*>(pointer); }

}  // namespace

PLIMSOLL_API CUresult cuMemsetD8Async(CUdeviceptr destination, unsigned char value, size_t count, CUstream stream) {
  return fill("cuMemsetD8Async", destination, value, count, stream);
}

PLIMSOLL_API CUresult cuMemsetD32Async(CUdeviceptr destination, unsigned value, size_t count, CUstream stream) {
  return fill("cuMemsetD32Async", destination, value, count, stream);
}

PLIMSOLL_API CUresult cuMemsetD32_v2(CUdeviceptr destination, unsigned value, size_t count) {
  return fill("cuMemsetD32", destination, value, count, nullptr);
}

PLIMSOLL_API CUresult cuMemsetD8_v2(CUdeviceptr destination, unsigned char value, size_t count) {
  return fill("cuMemsetD8", destination, value, count, nullptr);
}

PLIMSOLL_API CUresult cuMemcpyHtoD_v2(CUdeviceptr destination, const void* source, size_t bytes) {
  return copy("cuMemcpyHtoD", address(destination), source, bytes);
}

PLIMSOLL_API CUresult cuMemcpyDtoH_v2(void* destination, CUdeviceptr source, size_t bytes) {
  return copy("cuMemcpyDtoH", destination, address(source), bytes);
}

PLIMSOLL_API CUresult cuMemcpyDtoD_v2(CUdeviceptr destination, CUdeviceptr source, size_t bytes) {
  return copy("cuMemcpyDtoD", address(destination), address(source), bytes);
}

PLIMSOLL_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr destination, const void* source, size_t bytes, CUstream stream) {
  return copy_async("cuMemcpyHtoDAsync", address(destination), source, bytes, stream);
}

PLIMSOLL_API CUresult cuMemcpyDtoHAsync_v2(void* destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  return copy_async("cuMemcpyDtoHAsync", destination, address(source), bytes, stream);
}

PLIMSOLL_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  return copy_async("cuMemcpyDtoDAsync", address(destination), address(source), bytes, stream);
}

PLIMSOLL_API CUresult cuMemcpy(CUdeviceptr destination, CUdeviceptr source, size_t bytes) {
  return copy("cuMemcpy", address(destination), address(source), bytes);
}

PLIMSOLL_API CUresult cuMemcpyAsync(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  return copy_async("cuMemcpyAsync", address(destination), address(source), bytes, stream);
}

PLIMSOLL_API CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned) {
  return fill("cuStreamWriteValue32", address, value, 1, stream);
}

// The same under its older name, which torch 2.6 and 2.7 look up.
#undef cuStreamWriteValue32
PLIMSOLL_ALIAS(cuStreamWriteValue32, cuStreamWriteValue32_v2);
