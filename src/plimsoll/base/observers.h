#pragma once

#include <mutex>
#include <shared_mutex>
#include <vector>

namespace plimsoll {

/// A list of observers. `tell` holds the lock shared, so no call to an observer runs after its remove() returned.
/// Thread-safe.
template <class Observer>
class Observers {
 public:
  void add(Observer& observer) {
    const std::unique_lock lock(mutex_);
    all_.push_back(&observer);
  }

  void remove(Observer& observer) {
    const std::unique_lock lock(mutex_);
    std::erase(all_, &observer);
  }

  bool empty() const {
    const std::shared_lock lock(mutex_);
    return all_.empty();
  }

  /// In the order of add(). REQUIRES: `tell` neither adds nor removes observers.
  template <class Tell>
  void for_each(const Tell& tell) {
    const std::shared_lock lock(mutex_);
    for (auto* observer : all_) tell(*observer);
  }

 private:
  mutable std::shared_mutex mutex_;
  std::vector<Observer*> all_;
};

}  // namespace plimsoll
