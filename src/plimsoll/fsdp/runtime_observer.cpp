#include "plimsoll/fsdp/runtime_observer.h"

#include "plimsoll/base/observers.h"

namespace plimsoll::fsdp {
namespace {

/// Never destroyed: models may outlive statics.
Observers<RuntimeObserver>& observers() {
  static auto* const all = new Observers<RuntimeObserver>;
  return *all;
}

}  // namespace

namespace detail {

std::atomic<int> runtime_observers{0};

void notify_stage(Stage stage, const FSDPState& state) {
  observers().for_each([&](RuntimeObserver& observer) { observer.on_stage(stage, state); });
}

void notify_stage(Stage stage, const FSDPParamGroup& group) {
  observers().for_each([&](RuntimeObserver& observer) { observer.on_stage(stage, group); });
}

void notify_memory(MemoryUse use, const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  observers().for_each([&](RuntimeObserver& observer) { observer.on_memory(use, tensor, GroupScope::current()); });
}

}  // namespace detail

RuntimeObservation::RuntimeObservation(RuntimeObserver& observer) : observer_(observer) {
  observers().add(observer_);
  ++detail::runtime_observers;
}

RuntimeObservation::~RuntimeObservation() {
  --detail::runtime_observers;
  observers().remove(observer_);
}

}  // namespace plimsoll::fsdp
