#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>

#include "plimsoll/base/bytes.h"
#include "plimsoll/capture/listener.h"
#include "plimsoll/capture/registry.h"

namespace plimsoll::capture {

/// Subscribes a listener for the life of this object. The listener first receives the live allocations, then every
/// event of CPU and CUDA memory on all threads, and of other devices on threads with a ReportingScope. Live CPU
/// allocations are those made while any listener was subscribed, or adopted. Pinned memory is CPU memory.
class Subscription {
 public:
  /// Throws if the memory of this process cannot be observed; see start_cuda_trace.
  explicit Subscription(Listener& listener);
  ~Subscription();
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

 private:
  Listener& listener_;
};

/// Starts sources that became available after the first subscription: CUDA, after wait_for_cuda.
void start_late_sources();

/// Makes the books exact to the byte; call it before each read of the books. REQUIRES: the caller holds no lock that a
/// listener takes.
void settle();

/// Returns the allocation of a tensor, and starts to observe it if necessary and possible. Returns nothing for a tensor
/// without memory (meta, undefined, empty) or with memory from no allocator.
std::optional<Registry::Found> adopt(const at::Tensor& tensor);

/// Returns the allocation if it is already observed.
std::optional<Registry::Found> find(const at::Tensor& tensor);
std::optional<Registry::Found> find(const c10::Storage& storage);

}  // namespace plimsoll::capture
