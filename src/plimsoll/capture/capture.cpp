#include "plimsoll/capture/capture.h"

#include "plimsoll/capture/cpu_tap.h"
#include "plimsoll/capture/cuda_trace.h"

namespace plimsoll::capture {

Subscription::Subscription(Listener& listener) : listener_(listener) {
  install_cpu_tap();
  start_cuda_trace();
  settle_cuda_trace();
  Registry::of_process().subscribe(listener);
}

Subscription::~Subscription() { Registry::of_process().unsubscribe(listener_); }

void settle() { settle_cuda_trace(); }

std::optional<Registry::Found> adopt(const at::Tensor& tensor) {
  auto found = find(tensor);
  if (!found && tensor.defined() && tensor.has_storage() && adopt_cpu_storage(tensor.storage())) found = find(tensor);
  return found;
}

std::optional<Registry::Found> find(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return std::nullopt;
  return find(tensor.storage());
}

std::optional<Registry::Found> find(const c10::Storage& storage) {
  if (!storage || storage.data() == nullptr) return std::nullopt;
  return Registry::of_process().find(storage.device(), storage.data());
}

}  // namespace plimsoll::capture
