#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

/// Which tensors hold the memory behind a tensor. A plain one holds its own; a wrapper (DTensor, a quantised tensor of
/// the user's) has none, and tensors within that have it.
namespace plimsoll::capture {

using VisitTensor = std::function<void(const at::Tensor&)>;
using Unwrap = void (*)(const at::Tensor& wrapper, const VisitTensor& visit);

/// How to look into tensors that are implemented in Python; without it they are taken to hold their own memory. It is
/// called with no lock of ours held, on any thread. Set once.
void set_unwrap(Unwrap unwrap);

namespace detail {
void visit_holders_of_wrapper(const at::Tensor& tensor, const VisitTensor& visit);
}

/// Calls visit(tensor) for each that holds memory. REQUIRES: it is defined.
template <class Visit>
void for_each_holder(const at::Tensor& tensor, Visit&& visit) {
  if (tensor.unsafeGetTensorImpl()->is_python_dispatch()) {
    detail::visit_holders_of_wrapper(tensor, visit);
  } else {
    visit(tensor);
  }
}

}  // namespace plimsoll::capture
