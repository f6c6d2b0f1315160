#include "plimsoll/fsdp/runtime_observer.h"

#include <utility>

#include "plimsoll/base/observers.h"

namespace plimsoll::fsdp {
namespace {

thread_local const FSDPParamGroup* current_group = nullptr;
thread_local const MemoryUse* current_use = nullptr;

/// Never destroyed: models may outlive statics.
Observers<RuntimeObserver>& observers() {
  static auto* const all = new Observers<RuntimeObserver>;
  return *all;
}

}  // namespace

GroupScope::GroupScope(const FSDPParamGroup& group) : outer_(std::exchange(current_group, &group)) {}
GroupScope::~GroupScope() { current_group = outer_; }
const FSDPParamGroup* GroupScope::current() { return current_group; }

MemoryScope::MemoryScope(MemoryUse use) : use_(use), outer_(std::exchange(current_use, &use_)) {}
MemoryScope::~MemoryScope() { current_use = outer_; }
const MemoryUse* MemoryScope::current() { return current_use; }

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
