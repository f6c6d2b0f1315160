#include "plimsoll/fsdp/runtime_observer.h"

#include <mutex>
#include <shared_mutex>
#include <vector>

namespace plimsoll::fsdp {
namespace {

struct Observers {
  std::shared_mutex mutex;
  std::vector<RuntimeObserver*> all;

  static Observers& of_process() {
    static auto* const observers = new Observers;  // Never destroyed: models may outlive statics.
    return *observers;
  }
};

template <class Tell>
void tell_all(const Tell& tell) {
  auto& observers = Observers::of_process();
  const std::shared_lock lock(observers.mutex);
  for (auto* observer : observers.all) tell(*observer);
}

}  // namespace

namespace detail {

std::atomic<bool> runtime_observed{false};

void tell_stage(Stage stage, const FSDPState& state) {
  tell_all([&](RuntimeObserver& observer) { observer.on_stage(stage, state); });
}

void tell_stage(Stage stage, const FSDPParamGroup& group) {
  tell_all([&](RuntimeObserver& observer) { observer.on_stage(stage, group); });
}

void tell_memory(MemoryUse use, const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  tell_all([&](RuntimeObserver& observer) { observer.on_memory(use, tensor, GroupScope::current()); });
}

}  // namespace detail

RuntimeObservation::RuntimeObservation(RuntimeObserver& observer) : observer_(observer) {
  auto& observers = Observers::of_process();
  const std::unique_lock lock(observers.mutex);
  observers.all.push_back(&observer);
  detail::runtime_observed = true;
}

RuntimeObservation::~RuntimeObservation() {
  auto& observers = Observers::of_process();
  const std::unique_lock lock(observers.mutex);
  std::erase(observers.all, &observer_);
  detail::runtime_observed = !observers.all.empty();
}

}  // namespace plimsoll::fsdp
