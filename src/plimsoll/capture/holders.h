#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

/// Finds the tensors that hold the memory of a tensor. A plain tensor holds its own memory. A wrapper (DTensor, a
/// user's quantised tensor) has no memory; its inner tensors have it.
namespace plimsoll::capture {

using VisitTensor = std::function<void(const at::Tensor&)>;
using Unwrap = void (*)(const at::Tensor& wrapper, const VisitTensor& visit);

/// Sets the function that visits the inner tensors of Python tensor subclasses. Without it, such tensors count as
/// plain. The function is called without our locks, on any thread. Set it once.
void set_unwrap(Unwrap unwrap);

namespace detail {
void visit_holders_of_wrapper(const at::Tensor& tensor, const VisitTensor& visit);
}

/// Calls visit(tensor) for each tensor that holds memory. REQUIRES: `tensor` is defined.
template <class Visit>
void for_each_holder(const at::Tensor& tensor, Visit&& visit) {
  if (tensor.unsafeGetTensorImpl()->is_python_dispatch()) {
    detail::visit_holders_of_wrapper(tensor, visit);
  } else {
    visit(tensor);
  }
}

}  // namespace plimsoll::capture
