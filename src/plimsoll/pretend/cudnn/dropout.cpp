#include "plimsoll/pretend/cudnn/dropout.h"

#include "plimsoll/pretend/cudnn/tensor_descriptor.h"
#include "plimsoll/pretend/model/machine.h"

namespace plimsoll::pretend::cudnn {
namespace {

/// Bytes of the random generators' states: one XORWOW state (48 bytes, from cuRAND's header) for each thread that fits
/// on the device. An estimate; the real size is not documented.
Bytes dropout_states_bytes() {
  constexpr Bytes kStateBytes = 48;
  const Profile& profile = machine().profile();
  return static_cast<Bytes>(profile.multiprocessors) * static_cast<Bytes>(profile.threads_per_multiprocessor) *
         kStateBytes;
}

/// Null states are allowed, for a descriptor of which only the probability is used.
int set(DropoutDescriptor* dropout, const Handle* handle, float probability, void* states, std::size_t states_bytes,
        unsigned long long seed) {
  if (!alive(dropout) || !alive(handle)) return kBadParam;
  if (!(probability >= 0.0F && probability <= 1.0F)) return kBadParam;
  if (states != nullptr && states_bytes < dropout_states_bytes()) return kBadParam;
  *dropout = {{}, probability, states, states_bytes, seed};
  return kSuccess;
}

}  // namespace
}  // namespace plimsoll::pretend::cudnn

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cudnn;

PLIMSOLL_CUDNN_DESCRIPTOR(Dropout, DropoutDescriptor)

PLIMSOLL_API int cudnnDropoutGetStatesSize(const Handle* handle, std::size_t* bytes) {
  return alive(handle) ? give(bytes, dropout_states_bytes(), kBadParam) : kBadParam;
}

/// One bit an element.
PLIMSOLL_API int cudnnDropoutGetReserveSpaceSize(const TensorDescriptor* x, std::size_t* bytes) {
  if (!alive(x) || bytes == nullptr) return kBadParam;
  *bytes = (static_cast<std::size_t>(x->elements()) + 7) / 8;
  return kSuccess;
}

PLIMSOLL_API int cudnnSetDropoutDescriptor(DropoutDescriptor* dropout, const Handle* handle, float probability,
                                           void* states, std::size_t states_bytes, unsigned long long seed) {
  if (const int status = set(dropout, handle, probability, states, states_bytes, seed)) return status;
  // The real call fills the states on the device.
  return states == nullptr ? static_cast<int>(kSuccess) : Handles::enqueue("cudnnSetDropoutDescriptor", handle);
}

PLIMSOLL_API int cudnnRestoreDropoutDescriptor(DropoutDescriptor* dropout, const Handle* handle, float probability,
                                               void* states, std::size_t states_bytes, unsigned long long seed) {
  return set(dropout, handle, probability, states, states_bytes, seed);
}

PLIMSOLL_API int cudnnGetDropoutDescriptor(const DropoutDescriptor* dropout, const Handle* handle, float* probability,
                                           void** states, unsigned long long* seed) {
  if (!alive(dropout) || !alive(handle)) return kBadParam;
  put(probability, dropout->probability);
  put(states, dropout->states);
  put(seed, dropout->seed);
  return kSuccess;
}

PLIMSOLL_CUDNN_WORK(cudnnDropoutForward)
PLIMSOLL_CUDNN_WORK(cudnnDropoutBackward)
