#include "plimsoll/capture/holders.h"

#include <atomic>

namespace plimsoll::capture {
namespace {

std::atomic<Unwrap> unwrap_wrapper{nullptr};

}  // namespace

void set_unwrap(Unwrap unwrap) { unwrap_wrapper.store(unwrap, std::memory_order_release); }

namespace detail {

void visit_holders_of_wrapper(const at::Tensor& tensor, const VisitTensor& visit) {
  if (const auto unwrap = unwrap_wrapper.load(std::memory_order_acquire)) {
    unwrap(tensor, visit);
  } else {
    visit(tensor);
  }
}

}  // namespace detail

}  // namespace plimsoll::capture
