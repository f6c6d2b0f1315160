#pragma once

#include <ATen/ScalarOps.h>
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

/// Operands and results as Python has them.
namespace plimsoll::nn {

/// A number as an operand of an operator of two tensors, as Python passes it (`tensor.mul_(0.9)`): a tensor without
/// dimensions that does not take part in type promotion. The operators' overloads for numbers round it to the tensor's
/// dtype first, which gives other results in bfloat16.
inline at::Tensor as_tensor(const at::Scalar& number) { return at::native::wrapped_scalar_tensor(number); }

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
