#include "plimsoll/pretend/nccl/communicator.h"

namespace plimsoll::pretend::nccl {
namespace {

thread_local int group_depth = 0;

/// Calls between ncclGroupStart and ncclGroupEnd take effect at once: no peer exists to wait for.
int collective(const char* function, Communicator* communicator, void* stream, std::size_t count, int data_type,
               int peer = kNoPeer) {
  if (!alive(communicator)) return fail(kInvalidArgument, "%s: not a communicator", function);
  const Bytes bytes = bytes_of(data_type);
  if (bytes == 0) return fail(kInvalidArgument, "%s: data type %d", function, data_type);
  if (communicator->suspended()) return fail(kInvalidUsage, "%s: the communicator is suspended", function);
  if (!communicator->connect()) {
    return fail(kUnhandledCudaError, "Cuda failure 2 'out of memory' at the first %s of %d ranks", function,
                communicator->ranks);
  }
  enqueue_collective(function, stream,
                     {.bytes = count * bytes,
                      .communicator = communicator->number,
                      .rank = communicator->rank,
                      .ranks = communicator->ranks,
                      .peer = peer});
  return kSuccess;
}

int rooted(const char* function, Communicator* communicator, void* stream, std::size_t count, int data_type, int root) {
  if (alive(communicator) && (root < 0 || root >= communicator->ranks)) {
    return fail(kInvalidArgument, "%s: rank %d of %d", function, root, communicator->ranks);
  }
  return collective(function, communicator, stream, count, data_type, root);
}

std::size_t times_ranks(const Communicator* communicator, std::size_t count) {
  return alive(communicator) ? count * static_cast<std::size_t>(communicator->ranks) : 0;
}

}  // namespace
}  // namespace plimsoll::pretend::nccl

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::nccl;

PLIMSOLL_API int ncclGroupStart() {
  ++group_depth;
  return kSuccess;
}

PLIMSOLL_API int ncclGroupEnd() {
  if (group_depth == 0) return fail(kInvalidUsage, "ncclGroupEnd: not in a group call");
  --group_depth;
  return kSuccess;
}

/// The pretend GPU has no model of time that could estimate the group's duration.
PLIMSOLL_API int ncclGroupSimulateEnd(SimulationInfo* info) {
  if (group_depth == 0) return fail(kInvalidUsage, "ncclGroupSimulateEnd: not in a group call");
  --group_depth;
  if (info != nullptr && info->size >= sizeof(SimulationInfo)) info->estimated_time = 0.0F;
  return kSuccess;
}

// The bytes are those that this rank sends: its whole input.

PLIMSOLL_API int ncclAllReduce(const void*, void*, std::size_t count, int data_type, int /*operation*/,
                               Communicator* communicator, void* stream) {
  return collective("ncclAllReduce", communicator, stream, count, data_type);
}

PLIMSOLL_API int ncclReduce(const void*, void*, std::size_t count, int data_type, int /*operation*/, int root,
                            Communicator* communicator, void* stream) {
  return rooted("ncclReduce", communicator, stream, count, data_type, root);
}

PLIMSOLL_API int ncclBroadcast(const void*, void*, std::size_t count, int data_type, int root,
                               Communicator* communicator, void* stream) {
  return rooted("ncclBroadcast", communicator, stream, count, data_type, root);
}

PLIMSOLL_API int ncclBcast(void*, std::size_t count, int data_type, int root, Communicator* communicator,
                           void* stream) {
  return rooted("ncclBcast", communicator, stream, count, data_type, root);
}

PLIMSOLL_API int ncclAllGather(const void*, void*, std::size_t count, int data_type, Communicator* communicator,
                               void* stream) {
  return collective("ncclAllGather", communicator, stream, count, data_type);
}

PLIMSOLL_API int ncclReduceScatter(const void*, void*, std::size_t received, int data_type, int /*operation*/,
                                   Communicator* communicator, void* stream) {
  return collective("ncclReduceScatter", communicator, stream, times_ranks(communicator, received), data_type);
}

PLIMSOLL_API int ncclAlltoAll(const void*, void*, std::size_t count, int data_type, Communicator* communicator,
                              void* stream) {
  return collective("ncclAlltoAll", communicator, stream, times_ranks(communicator, count), data_type);
}

PLIMSOLL_API int ncclGather(const void*, void*, std::size_t count, int data_type, int root, Communicator* communicator,
                            void* stream) {
  return rooted("ncclGather", communicator, stream, count, data_type, root);
}

PLIMSOLL_API int ncclScatter(const void*, void*, std::size_t count, int data_type, int root, Communicator* communicator,
                             void* stream) {
  return rooted("ncclScatter", communicator, stream, times_ranks(communicator, count), data_type, root);
}

PLIMSOLL_API int ncclSend(const void*, std::size_t count, int data_type, int peer, Communicator* communicator,
                          void* stream) {
  return rooted("ncclSend", communicator, stream, count, data_type, peer);
}

/// The receiving rank sends nothing.
PLIMSOLL_API int ncclRecv(void*, std::size_t /*count*/, int data_type, int peer, Communicator* communicator,
                          void* stream) {
  return rooted("ncclRecv", communicator, stream, 0, data_type, peer);
}

PLIMSOLL_API int ncclPutSignal(const void*, std::size_t count, int data_type, int peer, void* /*window*/,
                               std::size_t /*offset*/, int /*signal*/, int /*context*/, unsigned /*flags*/,
                               Communicator* communicator, void* stream) {
  return rooted("ncclPutSignal", communicator, stream, count, data_type, peer);
}

PLIMSOLL_API int ncclSignal(int peer, int /*signal*/, int /*context*/, unsigned /*flags*/, Communicator* communicator,
                            void* stream) {
  constexpr int kInt8 = 0;
  return rooted("ncclSignal", communicator, stream, 0, kInt8, peer);
}

/// The signals of peers, which do not exist, count as received.
PLIMSOLL_API int ncclWaitSignal(int /*count*/, const void* /*signals*/, Communicator* communicator, void* stream) {
  constexpr int kInt8 = 0;
  return collective("ncclWaitSignal", communicator, stream, 0, kInt8);
}

/// User-defined operations get numbers after the five built-in ones. Nothing is computed with them.
PLIMSOLL_API int ncclRedOpCreatePreMulSum(int* operation, void* /*scalar*/, int data_type, int /*residence*/,
                                          Communicator* communicator) {
  constexpr int kFirstOwnOperation = 5;
  if (!alive(communicator) || operation == nullptr || bytes_of(data_type) == 0) {
    return fail(kInvalidArgument, "ncclRedOpCreatePreMulSum: not a communicator");
  }
  *operation = kFirstOwnOperation;
  return kSuccess;
}

PLIMSOLL_API int ncclRedOpDestroy(int /*operation*/, Communicator* communicator) {
  return alive(communicator) ? kSuccess : fail(kInvalidArgument, "ncclRedOpDestroy: not a communicator");
}
