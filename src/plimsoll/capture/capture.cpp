#include "plimsoll/capture/capture.h"

#include "plimsoll/capture/cpu_tap.h"
#include "plimsoll/capture/cuda_trace.h"
#include "plimsoll/capture/host_tap.h"
#include "plimsoll/capture/noted_storages.h"

namespace plimsoll::capture {

void start_late_sources() {
  install_host_tap();
  start_cuda_trace();
  settle_cuda_trace();
}

Subscription::Subscription(Listener& listener) : listener_(listener) {
  install_cpu_tap();
  start_late_sources();
  Registry::of_process().subscribe(listener);
}

Subscription::~Subscription() { Registry::of_process().unsubscribe(listener_); }

void settle() { settle_cuda_trace(); }

std::optional<Registry::Found> adopt(const at::Tensor& tensor) {
  const auto found = find(tensor);
  if (found || !tensor.defined() || !tensor.has_storage()) return found;
  const auto& storage = tensor.storage();
  return adopt_cpu_storage(storage) || adopt_pinned_storage(storage) ? find(tensor) : std::nullopt;
}

std::optional<Registry::Found> find(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return std::nullopt;
  return find(tensor.storage());
}

std::optional<Registry::Found> find(const c10::Storage& storage) {
  if (!storage) return std::nullopt;
  // Without the checks of data(), which throw for the storage of a fake tensor.
  const void* const address = storage.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get();
  if (address == nullptr) return find_noted(storage);
  return Registry::of_process().find(storage.device(), address);
}

}  // namespace plimsoll::capture
