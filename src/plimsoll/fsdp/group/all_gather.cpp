#include "plimsoll/fsdp/group/all_gather.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <numeric>
#include <utility>

#include "plimsoll/fsdp/runtime_observer.h"

namespace plimsoll::fsdp {
namespace {

std::int64_t sum(const std::vector<std::int64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
}

// Parameters that only need a cast are cast together. Mirrors _get_param_all_gather_inputs (torch 2.13).
std::vector<at::Tensor> all_gather_inputs_of(const FSDPParams& params) {
  std::vector<at::Tensor> inputs(params.size());
  std::vector<std::size_t> cast;
  std::vector<at::Tensor> cast_from;
  std::vector<std::int64_t> cast_numels;
  for (std::size_t i = 0; i < params.size(); ++i) {
    const FSDPParam& param = *params[i];
    if (param.param_dtype() && !param.offload_to_cpu()) {
      cast.push_back(i);
      cast_from.push_back(param.flat_shard());
      cast_numels.push_back(cast_from.back().numel());
    } else {
      inputs[i] = param.all_gather_input();
    }
  }
  if (cast.empty()) return inputs;
  const FSDPParam& first = *params[cast[0]];
  const MemoryScope memory(MemoryUse::kAllGatherInput);
  const at::Tensor flat =
      at::empty({sum(cast_numels)}, at::TensorOptions().device(first.device()).dtype(*first.param_dtype()));
  auto parts = flat.split_with_sizes(cast_numels);
  at::_foreach_copy_(parts, cast_from);
  for (std::size_t i = 0; i < cast.size(); ++i) inputs[cast[i]] = std::move(parts[i]);
  return inputs;
}

// If a parameter is split along another dimension than the first, its gathered shards lie one after the other and must
// be joined.
void join_shards(const FSDPParam& param, const at::Tensor& gathered, int world_size) {
  const auto dim = param.shard_dim();
  auto before = param.padded_sharded_param_size().vec(), after = before;
  before[0] *= world_size;
  after[static_cast<std::size_t>(dim)] *= world_size;
  const auto chunks = gathered.view(before).chunk(world_size, 0);
  at::Tensor out = param.all_gather_output().view(after);
  at::cat_out(out, chunks, dim);
}

}  // namespace

AllGatherResult foreach_all_gather(const FSDPParams& params, const ProcessGroup& group, bool async_op,
                                   const AllGatherStreams& streams, at::Device device, AllGather& comm,
                                   std::string_view what) {
  const at::NoGradGuard no_grad;
  const int world_size = group->getSize(), rank = group->getRank();
  AllGatherResult result;
  std::vector<at::Tensor> inputs;  // Keeps the inputs' memory until the collective is issued.
  at::Tensor own;
  {
    const StreamScope scope(streams.copy_in);
    inputs = all_gather_inputs_of(params);
    at::ScalarType dtype = inputs[0].scalar_type();
    for (const at::Tensor& input : inputs) {
      if (input.scalar_type() != dtype) dtype = at::kByte;  // Mixed dtypes are sent as bytes.
      result.input_dtypes.push_back(input.scalar_type());
      result.input_numels.push_back(input.numel());
    }
    if (dtype == at::kByte) {
      for (at::Tensor& input : inputs) input = input.view(at::kByte);
    }
    for (const at::Tensor& input : inputs) result.input_split_sizes.push_back(input.numel());
    const auto numel = sum(result.input_split_sizes);
    {
      const MemoryScope memory(MemoryUse::kAllGatherOutput);
      result.all_gather_output = comm.allocate(numel * world_size, dtype, device);
    }
    own = result.all_gather_output.narrow(0, numel * rank, numel);
    const auto parts = own.split_with_sizes(result.input_split_sizes);
    at::_foreach_copy_(parts, inputs);
  }
  streams.all_gather.wait_stream(streams.copy_in);
  const StreamScope scope(streams.all_gather);
  result.all_gather_work = comm(result.all_gather_output, own, group, async_op, what);
  result.all_gather_event = streams.all_gather.record_event();
  while (!inputs.empty()) inputs.pop_back();
  return result;
}

void foreach_all_gather_copy_out(const AllGatherResult& result, const FSDPParams& params, const ProcessGroup& group,
                                 std::string_view what) {
  const at::NoGradGuard no_grad;
  const at::Device device = result.all_gather_output.device();
  Stream::current(device).wait_event(result.all_gather_event);
  if (result.all_gather_work) distributed::wait(result.all_gather_work, group, "all_gather_single", what);
  const int world_size = group->getSize();

  std::vector<at::Tensor> outputs;
  std::vector<std::pair<const FSDPParam*, at::Tensor>> to_join;
  outputs.reserve(params.size());
  for (std::size_t i = 0; i < params.size(); ++i) {
    FSDPParam& param = *params[i];
    param.init_all_gather_output(result.input_numels[i], result.input_dtypes[i], world_size, device);
    param.alloc_all_gather_output();
    at::Tensor output = param.all_gather_output();
    if (param.shard_dim() != 0) {
      const MemoryScope memory(MemoryUse::kAllGatherCopyOut);
      output = at::empty_like(output);
      to_join.emplace_back(&param, output);
    }
    output = output.view({world_size, -1});
    if (result.all_gather_output.scalar_type() == at::kByte) output = output.view(at::kByte);
    outputs.push_back(std::move(output));
  }
  at::split_with_sizes_copy_out(outputs, result.all_gather_output.view({world_size, -1}), result.input_split_sizes, 1);
  for (const auto& [param, gathered] : to_join) join_shards(*param, gathered, world_size);

  // Python frees the temporaries last to first, except the last one, which its loop variable still references.
  outputs.clear();
  at::Tensor last = to_join.empty() ? at::Tensor() : to_join.back().second;
  while (!to_join.empty()) to_join.pop_back();
}

}  // namespace plimsoll::fsdp
