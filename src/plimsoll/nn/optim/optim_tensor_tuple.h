#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace plimsoll::nn {

/// The result of a foreach operator with Python's lifetime: copies share the tensors, and the last copy frees them from
/// the last to the first, as CPython does for tuples and lists. This is the allocator's order of frees.
class TensorTuple {
 public:
  TensorTuple() = default;
  TensorTuple(std::vector<at::Tensor> tensors) : items_(std::make_shared<Items>(std::move(tensors))) {}

  operator at::TensorList() const { return items_ ? at::TensorList(items_->tensors) : at::TensorList(); }
  const at::Tensor& operator[](std::size_t index) const { return items_->tensors[index]; }
  std::size_t size() const noexcept { return items_ ? items_->tensors.size() : 0; }
  auto begin() const { return static_cast<at::TensorList>(*this).begin(); }
  auto end() const { return static_cast<at::TensorList>(*this).end(); }

  void reset() noexcept { items_.reset(); }

 private:
  struct Items {
    explicit Items(std::vector<at::Tensor> all) : tensors(std::move(all)) {}
    Items(const Items&) = delete;
    Items& operator=(const Items&) = delete;
    ~Items() {
      while (!tensors.empty()) tensors.pop_back();
    }
    std::vector<at::Tensor> tensors;
  };

  std::shared_ptr<Items> items_;
};

}  // namespace plimsoll::nn
