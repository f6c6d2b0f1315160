#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>

#include "plimsoll/pretend/cuda/version.h"
#include "plimsoll/pretend/model/library_call.h"

/// nvJitLink concatenates the added images. The driver's face loads any image.
namespace plimsoll::pretend::nvjitlink {
namespace {

enum Result : int { kSuccess = 0, kMissingArchitecture = 2, kInvalidInput = 3, kInternal = 6 };

struct Linker {
  static constexpr std::uint32_t kAlive = 0x4e4a4c4bU;
  std::uint32_t magic = kAlive;
  std::string image;
  bool complete = false;
};

Linker* live(Linker* linker) { return linker != nullptr && linker->magic == Linker::kAlive ? linker : nullptr; }

int image_size(Linker* linker, std::size_t* bytes) {
  if (live(linker) == nullptr || bytes == nullptr || !linker->complete) return kInvalidInput;
  *bytes = linker->image.size();
  return kSuccess;
}

int image(Linker* linker, void* out) {
  if (live(linker) == nullptr || out == nullptr || !linker->complete) return kInvalidInput;
  std::memcpy(out, linker->image.data(), linker->image.size());
  return kSuccess;
}

/// The error log and the info log are always empty.
int empty_log_size(Linker* linker, std::size_t* bytes) {
  if (live(linker) == nullptr || bytes == nullptr) return kInvalidInput;
  *bytes = 0;
  return kSuccess;
}

int empty_log(Linker* linker, char* log) {
  if (live(linker) == nullptr || log == nullptr) return kInvalidInput;
  *log = '\0';
  return kSuccess;
}

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
  *out = new (std::nothrow) Linker;
  return *out == nullptr ? kInternal : kSuccess;
}

PLIMSOLL_API int nvJitLinkDestroy(Linker** linker) {
  if (linker == nullptr || live(*linker) == nullptr) return kInvalidInput;
  (*linker)->magic = 0;
  delete *linker;
  *linker = nullptr;
  return kSuccess;
}

PLIMSOLL_API int nvJitLinkAddData(Linker* linker, int /*type*/, const void* data, std::size_t bytes, const char*) {
  if (live(linker) == nullptr || data == nullptr || bytes == 0 || linker->complete) return kInvalidInput;
  try {
    linker->image.append(static_cast<const char*>(data), bytes);
  } catch (const std::bad_alloc&) {
    return kInternal;
  }
  return kSuccess;
}

PLIMSOLL_API int nvJitLinkComplete(Linker* linker) {
  if (live(linker) == nullptr || linker->image.empty()) return kInvalidInput;
  linker->complete = true;
  return kSuccess;
}

PLIMSOLL_API int nvJitLinkGetLinkedCubinSize(Linker* linker, std::size_t* bytes) { return image_size(linker, bytes); }
PLIMSOLL_API int nvJitLinkGetLinkedCubin(Linker* linker, void* out) { return image(linker, out); }
PLIMSOLL_API int nvJitLinkGetLinkedPtxSize(Linker* linker, std::size_t* bytes) { return image_size(linker, bytes); }
PLIMSOLL_API int nvJitLinkGetLinkedPtx(Linker* linker, char* out) { return image(linker, out); }
PLIMSOLL_API int nvJitLinkGetErrorLogSize(Linker* linker, std::size_t* bytes) { return empty_log_size(linker, bytes); }
PLIMSOLL_API int nvJitLinkGetErrorLog(Linker* linker, char* log) { return empty_log(linker, log); }
PLIMSOLL_API int nvJitLinkGetInfoLogSize(Linker* linker, std::size_t* bytes) { return empty_log_size(linker, bytes); }
PLIMSOLL_API int nvJitLinkGetInfoLog(Linker* linker, char* log) { return empty_log(linker, log); }

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
