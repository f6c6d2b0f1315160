#include <unistd.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "plimsoll/pretend/model/machine.h"
#include "plimsoll/pretend/nccl/communicator.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::nccl;

namespace {

int release(Communicator* communicator) {
  if (communicator == nullptr) return kSuccess;
  if (!alive(communicator)) return fail(kInvalidArgument, "not a communicator");
  communicator->give_back();
  return Communicators::destroy(communicator);
}

int give(Communicator* communicator, const int Communicator::* member, int* out) {
  if (!alive(communicator) || out == nullptr) return fail(kInvalidArgument, "not a communicator");
  *out = communicator->*member;
  return kSuccess;
}

}  // namespace

PLIMSOLL_API int ncclGetVersion(int* version) {
  if (version == nullptr) return fail(kInvalidArgument, "the pointer to the version is null");
  *version = kVersion;
  return kSuccess;
}

PLIMSOLL_API const char* ncclGetErrorString(int result) {
  static constexpr const char* kTexts[] = {"no error",       "unhandled cuda error", "unhandled system error",
                                           "internal error", "invalid argument",     "invalid usage",
                                           "remote error",   "in progress"};
  return result >= 0 && result < 8 ? kTexts[result] : "unknown result code";
}

PLIMSOLL_API const char* ncclGetLastError(Communicator*) { return last_failure(); }

/// Ids must only differ: no rank meets others through them.
PLIMSOLL_API int ncclGetUniqueId(UniqueId* id) {
  static std::atomic<std::uint64_t> next{1};
  if (id == nullptr) return fail(kInvalidArgument, "the pointer to the id is null");
  std::memset(id, 0, sizeof(*id));
  const std::uint64_t number[] = {next.fetch_add(1, std::memory_order_relaxed), static_cast<std::uint64_t>(getpid())};
  std::memcpy(id->internal, number, sizeof(number));
  return kSuccess;
}

PLIMSOLL_API int ncclCommInitRank(Communicator** out, int ranks, UniqueId, int rank) {
  return create(out, rank, ranks, current_device());
}

PLIMSOLL_ALIAS(ncclCommInitRankConfig, ncclCommInitRank);

PLIMSOLL_API int ncclCommInitRankScalable(Communicator** out, int ranks, int rank, int ids, const UniqueId* id,
                                          const ConfigHead*) {
  if (ids < 1 || id == nullptr) return fail(kInvalidArgument, "%d unique ids", ids);
  return create(out, rank, ranks, current_device());
}

PLIMSOLL_API int ncclCommInitAll(Communicator** out, int count, const int* devices) {
  if (out == nullptr || count < 1) return fail(kInvalidArgument, "%d communicators", count);
  for (int i = 0; i < count; ++i) {
    const int result = create(&out[i], i, count, devices == nullptr ? i : devices[i]);
    if (result == kSuccess) continue;
    while (i-- > 0) release(out[i]);
    return result;
  }
  return kSuccess;
}

/// The child's rank is the key: torch passes the rank in the new group. See ranks_of_color for the size.
PLIMSOLL_API int ncclCommSplit(Communicator* parent, int color, int key, Communicator** out, const ConfigHead*) {
  if (!alive(parent) || out == nullptr) return fail(kInvalidArgument, "not a communicator");
  *out = nullptr;
  if (color == kNoColor) return kSuccess;
  // A key outside of the group still orders the ranks. The only rank is then the first.
  const int rank = key >= 0 && key <= parent->rank ? key : 0;
  return create(out, rank, ranks_of_color(color, rank, parent->rank, parent->ranks), parent->device);
}

PLIMSOLL_API int ncclCommShrink(Communicator* parent, const int* excluded, int count, Communicator** out,
                                const ConfigHead*, int /*flags*/) {
  if (!alive(parent) || out == nullptr) return fail(kInvalidArgument, "not a communicator");
  *out = nullptr;
  if (count < 1 || count >= parent->ranks || excluded == nullptr) {
    return fail(kInvalidArgument, "%d of %d ranks to exclude", count, parent->ranks);
  }
  int before = 0;
  for (int i = 0; i < count; ++i) {
    if (excluded[i] < 0 || excluded[i] >= parent->ranks) return fail(kInvalidArgument, "rank %d", excluded[i]);
    if (excluded[i] == parent->rank) return fail(kInvalidArgument, "rank %d excludes itself", parent->rank);
    if (excluded[i] < parent->rank) ++before;
  }
  return create(out, parent->rank - before, parent->ranks - count, parent->device);
}

PLIMSOLL_API int ncclCommFinalize(Communicator* communicator) {
  return alive(communicator) ? kSuccess : fail(kInvalidArgument, "not a communicator");
}

PLIMSOLL_API int ncclCommDestroy(Communicator* communicator) { return release(communicator); }
PLIMSOLL_ALIAS(ncclCommAbort, ncclCommDestroy);

PLIMSOLL_API int ncclCommGetAsyncError(Communicator* communicator, int* error) {
  if (!alive(communicator) || error == nullptr) return fail(kInvalidArgument, "not a communicator");
  *error = kSuccess;
  return kSuccess;
}

PLIMSOLL_API int ncclCommCount(Communicator* communicator, int* count) {
  return give(communicator, &Communicator::ranks, count);
}

PLIMSOLL_API int ncclCommUserRank(Communicator* communicator, int* rank) {
  return give(communicator, &Communicator::rank, rank);
}

PLIMSOLL_API int ncclCommCuDevice(Communicator* communicator, int* device) {
  return give(communicator, &Communicator::device, device);
}

PLIMSOLL_API int ncclCommSuspend(Communicator* communicator, int flags) {
  constexpr int kMemory = 1;
  if (!alive(communicator)) return fail(kInvalidArgument, "not a communicator");
  if (flags != kMemory) return fail(kInvalidArgument, "suspend flags %d", flags);
  return communicator->suspend() ? static_cast<int>(kSuccess) : fail(kInvalidUsage, "already suspended");
}

PLIMSOLL_API int ncclCommResume(Communicator* communicator) {
  if (!alive(communicator)) return fail(kInvalidArgument, "not a communicator");
  if (!communicator->resume()) return fail(kInvalidUsage, "not suspended");
  return communicator->connect() ? static_cast<int>(kSuccess)
                                 : fail(kUnhandledCudaError, "Cuda failure 2 'out of memory'");
}

/// `statistic`: 0 bytes that can be suspended, 1 whether they are suspended, 2 other bytes, 3 all bytes.
PLIMSOLL_API int ncclCommMemStats(Communicator* communicator, int statistic, std::uint64_t* value) {
  if (!alive(communicator) || value == nullptr) return fail(kInvalidArgument, "not a communicator");
  const plimsoll::Bytes all = communicator->charged();
  const plimsoll::Bytes base = machine().profile().nccl.base;
  const plimsoll::Bytes values[] = {all - base, communicator->suspended() ? 1U : 0U, base, all};
  if (statistic < 0 || statistic > 3) return fail(kInvalidArgument, "statistic %d", statistic);
  *value = values[statistic];
  return kSuccess;
}
