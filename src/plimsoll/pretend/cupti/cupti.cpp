#include <time.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "plimsoll/pretend/cuda/version.h"
#include "plimsoll/pretend/model/object.h"

/// CUPTI: a profiler can start, run and stop, but receives no records. Kernels take no time here, so records would not
/// be true. The feed has the events of the card (pretend/model/streams/feed.h).
namespace plimsoll::pretend::cupti {
namespace {

enum Result : int {
  kSuccess = 0,
  kInvalidParameter = 1,
  kMaxLimitReached = 12,
  kQueueEmpty = 18,
  kMultipleSubscribers = 39,
};

/// CUpti_SubscriberHandle: CUPTI allows one subscriber.
struct Subscriber {
  void* callback;
  void* userdata;
};
std::atomic<Subscriber*> subscriber{nullptr};

// Stored as in CUPTI. Buffers are requested only for records, so never.
std::atomic<void*> on_buffer_requested{nullptr};
std::atomic<void*> on_buffer_completed{nullptr};

constexpr int kCorrelationKinds = 8;
thread_local std::array<std::vector<std::uint64_t>, kCorrelationKinds> correlations;

int known(const Subscriber* handle) {
  return handle != nullptr && handle == subscriber.load(std::memory_order_acquire) ? kSuccess : kInvalidParameter;
}

}  // namespace
}  // namespace plimsoll::pretend::cupti

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cupti;

/// 13.x has CUDA's version numbers; CUDA 12.4's CUPTI reports 22.
PLIMSOLL_API int cuptiGetVersion(std::uint32_t* version) {
  return give(version, kCudaMajor >= 13 ? kCudaMajor * 10000 + kCudaMinor * 100 : 22, kInvalidParameter);
}

PLIMSOLL_API int cuptiGetResultString(int result, const char** text) {
  static constexpr StatusName kNames[] = {
      {kSuccess, "CUPTI_SUCCESS"},
      {kInvalidParameter, "CUPTI_ERROR_INVALID_PARAMETER"},
      {kMaxLimitReached, "CUPTI_ERROR_MAX_LIMIT_REACHED"},
      {kQueueEmpty, "CUPTI_ERROR_QUEUE_EMPTY"},
      {kMultipleSubscribers, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"},
  };
  return give(text, name_of(kNames, result, "CUPTI_ERROR_UNKNOWN"), kInvalidParameter);
}

PLIMSOLL_API int cuptiGetTimestamp(std::uint64_t* nanoseconds) {
  if (nanoseconds == nullptr) return kInvalidParameter;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *nanoseconds = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
  return kSuccess;
}

PLIMSOLL_API int cuptiSubscribe(Subscriber** handle, void* callback, void* userdata) {
  if (handle == nullptr) return kInvalidParameter;
  auto* candidate = new (std::nothrow) Subscriber{callback, userdata};
  if (candidate == nullptr) return kInvalidParameter;
  Subscriber* none = nullptr;
  if (!subscriber.compare_exchange_strong(none, candidate, std::memory_order_acq_rel)) {
    delete candidate;
    return kMultipleSubscribers;
  }
  *handle = candidate;
  return kSuccess;
}

PLIMSOLL_API int cuptiUnsubscribe(Subscriber* handle) {
  Subscriber* expected = handle;
  if (handle == nullptr || !subscriber.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel)) {
    return kInvalidParameter;
  }
  delete handle;
  return kSuccess;
}

// Callbacks can be enabled, but the pretend GPU never calls them.
PLIMSOLL_API int cuptiEnableCallback(std::uint32_t, Subscriber* handle, int, std::uint32_t) { return known(handle); }
PLIMSOLL_API int cuptiEnableDomain(std::uint32_t, Subscriber* handle, int) { return known(handle); }

/// Callback ids come only with records and callbacks, which do not occur.
PLIMSOLL_API int cuptiGetCallbackName(int, std::uint32_t, const char** name) {
  if (name != nullptr) *name = nullptr;
  return kInvalidParameter;
}

PLIMSOLL_API int cuptiFinalize() {
  delete subscriber.exchange(nullptr, std::memory_order_acq_rel);
  on_buffer_requested.store(nullptr, std::memory_order_release);
  on_buffer_completed.store(nullptr, std::memory_order_release);
  return kSuccess;
}

PLIMSOLL_API int cuptiActivityRegisterCallbacks(void* requested, void* completed) {
  if (requested == nullptr || completed == nullptr) return kInvalidParameter;
  on_buffer_requested.store(requested, std::memory_order_release);
  on_buffer_completed.store(completed, std::memory_order_release);
  return kSuccess;
}

PLIMSOLL_API int cuptiActivityRegisterTimestampCallback(void* timestamp) {
  return timestamp == nullptr ? kInvalidParameter : kSuccess;
}

// Switches for kinds of records that do not occur.
PLIMSOLL_API int cuptiActivityEnable(int) { return kSuccess; }
PLIMSOLL_API int cuptiActivityDisable(int) { return kSuccess; }
PLIMSOLL_API int cuptiActivityEnableRuntimeApi(std::uint32_t, std::uint8_t) { return kSuccess; }
PLIMSOLL_API int cuptiActivityEnableDriverApi(std::uint32_t, std::uint8_t) { return kSuccess; }
PLIMSOLL_API int cuptiActivityEnableCudaEventDeviceTimestamps(std::uint8_t) { return kSuccess; }
PLIMSOLL_API int cuptiActivityEnableLatencyTimestamps(std::uint8_t) { return kSuccess; }
PLIMSOLL_API int cuptiActivityFlushPeriod(std::uint32_t) { return kSuccess; }

PLIMSOLL_API int cuptiActivitySetAttribute(int, const std::size_t* bytes, const void* value) {
  return bytes == nullptr || value == nullptr ? kInvalidParameter : kSuccess;
}

PLIMSOLL_API int cuptiActivityFlushAll(std::uint32_t) { return kSuccess; }

PLIMSOLL_API int cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t, void** record) {
  if (buffer == nullptr || record == nullptr) return kInvalidParameter;
  *record = nullptr;
  return kMaxLimitReached;
}

PLIMSOLL_API int cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t* dropped) {
  return give(dropped, 0, kInvalidParameter);
}

PLIMSOLL_API int cuptiActivityPushExternalCorrelationId(int kind, std::uint64_t id) {
  if (kind < 0 || kind >= kCorrelationKinds) return kInvalidParameter;
  return guarded(kInvalidParameter, [&] {
    correlations[static_cast<std::size_t>(kind)].push_back(id);
    return kSuccess;
  });
}

PLIMSOLL_API int cuptiActivityPopExternalCorrelationId(int kind, std::uint64_t* last) {
  if (kind < 0 || kind >= kCorrelationKinds) return kInvalidParameter;
  auto& stack = correlations[static_cast<std::size_t>(kind)];
  if (stack.empty()) return kQueueEmpty;
  put(last, stack.back());
  stack.pop_back();
  return kSuccess;
}
