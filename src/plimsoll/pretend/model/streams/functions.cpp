#include "plimsoll/pretend/model/streams/functions.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace plimsoll::pretend {

void Functions::add_kernel(const void* key, const char* name) {
  std::lock_guard lock(mutex_);
  kernels_.push_back({key, name});
  sorted_ = false;
}

const char* Functions::kernel_name(const void* key) {
  const auto before = [](const Kernel& a, const Kernel& b) { return std::less<>{}(a.key, b.key); };
  std::lock_guard lock(mutex_);
  if (!sorted_) {
    std::stable_sort(kernels_.begin(), kernels_.end(), before);
    sorted_ = true;
  }
  // If a key has several entries, the newest counts: an unloaded library may have left its own.
  const auto after = std::upper_bound(kernels_.begin(), kernels_.end(), Kernel{key, nullptr}, before);
  return after != kernels_.begin() && std::prev(after)->key == key ? std::prev(after)->name : "?";
}

const void* Functions::make_kernel(const std::string& name) {
  auto* const kept = new std::string(name);
  {
    std::lock_guard lock(mutex_);
    made_.push_back(kept);
  }
  add_kernel(kept, kept->c_str());
  return kept;
}

const void* Functions::name_key(const std::string& name) {
  std::lock_guard lock(mutex_);
  return &names_[name];
}

void Functions::add_variable(const void* key, Bytes bytes) {
  constexpr Bytes kAlignment = 256;
  std::lock_guard lock(mutex_);
  const auto [place, added] = variables_.try_emplace(key, Place{next_offset_, bytes});
  if (added) next_offset_ += round_up(std::max<Bytes>(bytes, 1), kAlignment);
}

Functions::Place Functions::variable(const void* key) {
  add_variable(key, Bytes{4} << 10);
  std::lock_guard lock(mutex_);
  return variables_.at(key);
}

Functions& functions() {
  static auto* const instance = new Functions;
  return *instance;
}

}  // namespace plimsoll::pretend
