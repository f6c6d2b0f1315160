#include "plimsoll/fsdp/group/comm.h"

#include <ATen/Functions.h>

namespace plimsoll::fsdp {

at::Tensor Comm::allocate(std::int64_t numel, at::ScalarType dtype, at::Device device) {
  return at::empty({numel}, at::TensorOptions().dtype(dtype).device(device));
}

distributed::Work AllGather::operator()(const at::Tensor& output, const at::Tensor& input,
                                        const distributed::ProcessGroup& group, bool async_op, std::string_view what) {
  return distributed::all_gather_single(output, input, group, async_op, what);
}

distributed::Work ReduceScatter::operator()(const at::Tensor& output, const at::Tensor& input,
                                            const distributed::ProcessGroup& group, const c10d::ReduceOp& op,
                                            bool async_op, std::string_view what) {
  return distributed::reduce_scatter_single(output, input, group, op, async_op, what);
}

}  // namespace plimsoll::fsdp
