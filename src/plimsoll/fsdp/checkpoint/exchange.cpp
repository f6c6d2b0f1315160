#include "plimsoll/fsdp/checkpoint/exchange.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "plimsoll/distributed/collectives.h"
#include "plimsoll/fsdp/param/mesh_info.h"

namespace plimsoll::fsdp {
namespace {

// The device on which the default group takes tensors.
at::Device device_of(const ProcessGroup& group) {
  if (group->getBackendType() != c10d::ProcessGroup::BackendType::NCCL) return at::kCPU;
  return c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getDevice();
}

// Backends do not support all dtypes, but all support bytes.
at::Tensor bytes_of(const at::Tensor& tensor) { return tensor.view(-1).view(at::kByte); }

at::Tensor tensor_of(std::string_view text, std::int64_t length) {
  at::Tensor tensor = at::zeros({length}, at::kByte);
  std::memcpy(tensor.mutable_data_ptr(), text.data(), std::min<std::size_t>(text.size(), tensor.nbytes()));
  return tensor;
}

std::string text_of(const at::Tensor& tensor) {
  const at::Tensor host = tensor.cpu();
  return {static_cast<const char*>(host.const_data_ptr()), host.nbytes()};
}

std::string broadcast_text(const std::string& text, int from, std::int64_t length, std::string_view doing) {
  const auto group = distributed::default_group();
  // Starts from this rank's own text: a "fake" group does not receive anything.
  const at::Tensor bytes = tensor_of(text, length).to(device_of(group));
  distributed::broadcast(bytes, group, from, doing);
  return text_of(bytes);
}

std::vector<std::int64_t> all_numbers(std::int64_t mine, std::string_view doing) {
  const auto group = distributed::default_group();
  const auto device = device_of(group);
  const at::Tensor own = at::full({1}, mine, at::TensorOptions().dtype(at::kLong).device(device));
  at::Tensor all = at::empty({group->getSize()}, own.options());
  distributed::all_gather_single(all, own, group, /*async_op=*/false, doing);
  all = all.cpu();
  return {all.const_data_ptr<std::int64_t>(), all.const_data_ptr<std::int64_t>() + all.numel()};
}

}  // namespace

int own_rank() { return distributed::is_initialized() ? distributed::get_rank() : 0; }
int rank_count() { return distributed::is_initialized() ? distributed::get_world_size() : 1; }
bool is_main_rank() { return own_rank() == 0; }

at::Tensor gather(const StoredTensor& entry) {
  const at::NoGradGuard no_grad;
  const bool keeps = is_main_rank();
  if (!entry.is_sharded()) {
    if (!keeps) return {};
    return entry.local.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true).contiguous();
  }
  const auto size = entry.sizes[static_cast<std::size_t>(entry.dim)];
  const int ranks = entry.mesh_info->shard_mesh_size;
  const auto padded_length = chunk_range(size, ranks, 0).padded_length;
  const auto options = entry.local.options().device(entry.device).pinned_memory(false);
  if (c10::multiply_integers(entry.sizes) == 0) {
    return keeps ? at::empty(entry.sizes, options.device(at::kCPU)) : at::Tensor();
  }
  const auto padded_sizes = with_dim(entry.sizes, entry.dim, padded_length);
  at::Tensor mine = at::zeros(padded_sizes, options);
  mine.narrow(entry.dim, 0, entry.local.size(entry.dim)).copy_(entry.local);
  auto all_sizes = padded_sizes;
  all_sizes.insert(all_sizes.begin(), ranks);
  const at::Tensor all = at::empty(all_sizes, options);
  distributed::all_gather_single(bytes_of(all), bytes_of(mine), entry.mesh_info->shard_process_group,
                                 /*async_op=*/false, "the state '" + entry.name + "'");
  if (!keeps) return {};
  mine.reset();
  const at::Tensor padded = entry.dim == 0 ? all.flatten(0, 1) : at::cat(all.unbind(0), entry.dim);
  return padded.narrow(entry.dim, 0, size).cpu().contiguous();
}

void distribute(const StoredTensor& entry, const at::Tensor& whole) {
  const at::NoGradGuard no_grad;
  if (rank_count() == 1) {
    entry.local.copy_(entry.part_of(whole));
    return;
  }
  if (c10::multiply_integers(entry.sizes) == 0) return;
  const auto group = distributed::default_group();
  const auto options = at::TensorOptions().dtype(entry.local.scalar_type()).device(device_of(group));
  const at::Tensor sent = whole.defined() ? whole.detach().to(options).contiguous() : at::zeros(entry.sizes, options);
  distributed::broadcast(bytes_of(sent), group, /*root=*/0, "the state '" + entry.name + "'");
  entry.local.copy_(entry.part_of(sent));
}

std::string from_main_rank(std::string text, std::string_view doing) {
  if (rank_count() == 1) return text;
  return broadcast_text(text, 0, all_numbers(static_cast<std::int64_t>(text.size()), doing)[0], doing);
}

void fail_together(std::string_view doing, const std::optional<std::string>& defect) {
  if (rank_count() == 1) {
    TORCH_CHECK(!defect, doing, " failed: ", *defect);
    return;
  }
  const auto lengths = all_numbers(defect ? static_cast<std::int64_t>(defect->size()) + 1 : 0, doing);
  const auto failed = std::find_if(lengths.begin(), lengths.end(), [](auto length) { return length > 0; });
  if (failed == lengths.end()) return;
  const int rank = static_cast<int>(failed - lengths.begin());
  TORCH_CHECK(false, doing, " failed on rank ", rank, ": ",
              broadcast_text(defect.value_or(""), rank, *failed - 1, doing));
}

void require_same_names(std::string_view doing, const StoredTensors& state) {
  if (rank_count() == 1) return;
  std::string all;
  for (const StoredTensor& entry : state) {
    all += entry.name + c10::str(at::IntArrayRef(entry.sizes), entry.local.scalar_type());
  }
  const auto sums = all_numbers(static_cast<std::int64_t>(std::hash<std::string>()(all)), doing);
  const auto other = std::find_if(sums.begin(), sums.end(), [&](auto sum) { return sum != sums[0]; });
  TORCH_CHECK(other == sums.end(), doing,
              " needs the same tensors, of the same shapes and dtypes, on all ranks, and rank ", other - sums.begin(),
              " has others than rank 0 (this is rank ", own_rank(), ", with ", state.size(),
              "). Build the model and step the optimizer alike on all ranks.");
}

}  // namespace plimsoll::fsdp
