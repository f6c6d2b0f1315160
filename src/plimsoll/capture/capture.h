#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>

#include "plimsoll/base/bytes.h"
#include "plimsoll/capture/listener.h"
#include "plimsoll/capture/registry.h"

namespace plimsoll::capture {

/// A listener's time of listening. It hears of CPU and CUDA memory on every thread, and first of all that is alive (on
/// the CPU: that was made while somebody listened, or was adopted; pinned memory is the CPU's). Other devices it hears
/// of on threads with a ReportingScope.
class Subscription {
 public:
  /// Throws where the memory of this process cannot be seen; see start_cuda_trace.
  explicit Subscription(Listener& listener);
  ~Subscription();
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

 private:
  Listener& listener_;
};

/// Sources that were not there yet when somebody began to listen: CUDA, initialised since (wait_for_cuda).
void start_late_sources();

/// Makes the books true to the byte; every look at them comes after it. REQUIRES: no lock is held that a listener
/// takes.
void settle();

/// The allocation behind a tensor, brought under observation if it can be and was not; nothing for a tensor without
/// memory (meta, undefined, empty) or whose memory is not an allocator's.
std::optional<Registry::Found> adopt(const at::Tensor& tensor);

/// The same, where it is under observation already.
std::optional<Registry::Found> find(const at::Tensor& tensor);
std::optional<Registry::Found> find(const c10::Storage& storage);

}  // namespace plimsoll::capture
