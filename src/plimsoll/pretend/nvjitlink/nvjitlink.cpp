#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "plimsoll/pretend/cuda/version.h"
#include "plimsoll/pretend/model/object.h"

/// nvJitLink concatenates the added images. The driver's face loads any image.
namespace plimsoll::pretend::nvjitlink {
namespace {

enum Result : int { kSuccess = 0, kMissingArchitecture = 2, kInvalidInput = 3, kInternal = 6 };

struct Linker : Object<0x4e4a4c4bU> {
  std::string image;
  bool complete = false;
};

using Linkers = Objects<kInvalidInput, kInvalidInput, kInternal>;

}  // namespace
}  // namespace plimsoll::pretend::nvjitlink

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::nvjitlink;

PLIMSOLL_API int nvJitLinkVersion(unsigned* major, unsigned* minor) {
  if (major == nullptr || minor == nullptr) return kInvalidInput;
  *major = kCudaMajor;
  *minor = kCudaMinor;
  return kSuccess;
}

/// The architecture is the only required option.
PLIMSOLL_API int nvJitLinkCreate(Linker** out, std::uint32_t count, const char* const* options) {
  if (out == nullptr || (count > 0 && options == nullptr)) return kInvalidInput;
  *out = nullptr;
  bool has_architecture = false;
  for (std::uint32_t i = 0; i < count; ++i) {
    has_architecture |= options[i] != nullptr && std::strncmp(options[i], "-arch", 5) == 0;
  }
  if (!has_architecture) return kMissingArchitecture;
  return Linkers::make(out);
}

PLIMSOLL_API int nvJitLinkDestroy(Linker** linker) {
  if (linker == nullptr || !alive(*linker)) return kInvalidInput;
  return Linkers::destroy(std::exchange(*linker, nullptr));
}

PLIMSOLL_API int nvJitLinkAddData(Linker* linker, int /*type*/, const void* data, std::size_t bytes, const char*) {
  if (!alive(linker) || data == nullptr || bytes == 0 || linker->complete) return kInvalidInput;
  return guarded(kInternal, [&] {
    linker->image.append(static_cast<const char*>(data), bytes);
    return kSuccess;
  });
}

PLIMSOLL_API int nvJitLinkComplete(Linker* linker) {
  if (!alive(linker) || linker->image.empty()) return kInvalidInput;
  linker->complete = true;
  return kSuccess;
}

PLIMSOLL_API int nvJitLinkGetLinkedCubinSize(Linker* linker, std::size_t* bytes) {
  return alive(linker) && linker->complete ? give(bytes, linker->image.size(), kInvalidInput) : kInvalidInput;
}
PLIMSOLL_ALIAS(nvJitLinkGetLinkedPtxSize, nvJitLinkGetLinkedCubinSize);

PLIMSOLL_API int nvJitLinkGetLinkedCubin(Linker* linker, void* out) {
  if (!alive(linker) || out == nullptr || !linker->complete) return kInvalidInput;
  std::memcpy(out, linker->image.data(), linker->image.size());
  return kSuccess;
}
PLIMSOLL_ALIAS(nvJitLinkGetLinkedPtx, nvJitLinkGetLinkedCubin);

// The error log and the info log are always empty.
PLIMSOLL_API int nvJitLinkGetErrorLogSize(Linker* linker, std::size_t* bytes) {
  return alive(linker) ? give(bytes, 0, kInvalidInput) : kInvalidInput;
}
PLIMSOLL_ALIAS(nvJitLinkGetInfoLogSize, nvJitLinkGetErrorLogSize);

PLIMSOLL_API int nvJitLinkGetErrorLog(Linker* linker, char* log) {
  return alive(linker) ? give(log, '\0', kInvalidInput) : kInvalidInput;
}
PLIMSOLL_ALIAS(nvJitLinkGetInfoLog, nvJitLinkGetErrorLog);

// Callers are compiled against names that contain the version of their header.
#define PLIMSOLL_NVJITLINK_NAMES(version)                                               \
  PLIMSOLL_ALIAS(__nvJitLinkCreate_##version, nvJitLinkCreate);                         \
  PLIMSOLL_ALIAS(__nvJitLinkDestroy_##version, nvJitLinkDestroy);                       \
  PLIMSOLL_ALIAS(__nvJitLinkAddData_##version, nvJitLinkAddData);                       \
  PLIMSOLL_ALIAS(__nvJitLinkComplete_##version, nvJitLinkComplete);                     \
  PLIMSOLL_ALIAS(__nvJitLinkGetLinkedCubinSize_##version, nvJitLinkGetLinkedCubinSize); \
  PLIMSOLL_ALIAS(__nvJitLinkGetLinkedCubin_##version, nvJitLinkGetLinkedCubin);         \
  PLIMSOLL_ALIAS(__nvJitLinkGetErrorLogSize_##version, nvJitLinkGetErrorLogSize);       \
  PLIMSOLL_ALIAS(__nvJitLinkGetErrorLog_##version, nvJitLinkGetErrorLog)

#if PLIMSOLL_CUDA_MAJOR >= 13
PLIMSOLL_NVJITLINK_NAMES(13_0);
PLIMSOLL_NVJITLINK_NAMES(13_1);
PLIMSOLL_NVJITLINK_NAMES(13_2);
#else
PLIMSOLL_NVJITLINK_NAMES(12_0);
PLIMSOLL_NVJITLINK_NAMES(12_4);
PLIMSOLL_NVJITLINK_NAMES(12_6);
PLIMSOLL_NVJITLINK_NAMES(12_8);
PLIMSOLL_NVJITLINK_NAMES(12_9);
#endif
