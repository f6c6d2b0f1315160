#include <atomic>
#include <cstdint>

#include "plimsoll/pretend/model/library_call.h"

/// NVTX, the library of CUDA 12 builds; CUDA 13 builds contain it. It answers as NVTX does without a tool, but counts
/// the nesting of ranges.
namespace {

thread_local int depth = 0;
std::atomic<std::uint64_t> next_range{1};

int push() { return depth++; }
std::uint64_t start() { return next_range.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

/// The level of the new range, from 0.
PLIMSOLL_API int nvtxRangePushA(const char*) { return push(); }
PLIMSOLL_API int nvtxRangePushW(const wchar_t*) { return push(); }
PLIMSOLL_API int nvtxRangePushEx(const void*) { return push(); }

/// The level of the range that ends; negative if no range is open.
PLIMSOLL_API int nvtxRangePop() { return depth == 0 ? -1 : --depth; }

PLIMSOLL_API std::uint64_t nvtxRangeStartA(const char*) { return start(); }
PLIMSOLL_API std::uint64_t nvtxRangeStartW(const wchar_t*) { return start(); }
PLIMSOLL_API std::uint64_t nvtxRangeStartEx(const void*) { return start(); }
PLIMSOLL_API void nvtxRangeEnd(std::uint64_t) {}

PLIMSOLL_API void nvtxMarkA(const char*) {}
PLIMSOLL_API void nvtxMarkW(const wchar_t*) {}
PLIMSOLL_API void nvtxMarkEx(const void*) {}

PLIMSOLL_API void nvtxNameOsThreadA(std::uint32_t, const char*) {}
PLIMSOLL_API void nvtxNameOsThreadW(std::uint32_t, const wchar_t*) {}
PLIMSOLL_API void nvtxNameCategoryA(std::uint32_t, const char*) {}
PLIMSOLL_API void nvtxInitialize(const void*) {}
