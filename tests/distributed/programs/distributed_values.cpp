// Runs collectives on this rank's numbers and prints the results' bits, one line each; a test in Python compares them
// with torch.distributed's. Started with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as with torchrun.
#include <ATen/Functions.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

#include "plimsoll/distributed/collectives.h"
#include "plimsoll/distributed/device_mesh.h"
#include "programs/programs.h"

namespace distributed_values {

using namespace plimsoll::distributed;

namespace {

// Numbers whose sum depends on the order of summation.
at::Tensor numbers(int rank, std::int64_t count, at::ScalarType dtype) {
  const auto index = at::arange(count, at::kLong);
  const auto bits = (index * 1103515245 + (rank + 1) * 12345).remainder(65536);
  return (bits.to(at::kDouble) / 1000 - 32).to(dtype);
}

void print(const std::string& name, const at::Tensor& tensor) {
  const auto bytes = tensor.contiguous().view(at::kByte);
  std::printf("%s ", name.c_str());
  for (std::int64_t i = 0; i < bytes.numel(); ++i) {
    std::printf("%02x", bytes.data_ptr<std::uint8_t>()[i]);
  }
  std::printf("\n");
}

void print_collectives(const std::string& name, const ProcessGroup& group, at::ScalarType dtype,
                       const c10d::ReduceOp& op) {
  const int rank = get_rank();
  const int size = group->getSize();
  auto reduced = numbers(rank, 37, dtype);
  all_reduce(reduced, group, op);
  print(name + " all_reduce", reduced);
  auto part = at::empty({11}, at::TensorOptions(dtype));
  reduce_scatter_single(part, numbers(rank, 11 * size, dtype), group, op);
  print(name + " reduce_scatter", part);
  auto all = at::empty({11 * size}, at::TensorOptions(dtype));
  wait(all_gather_single(all, part, group, true), group, "all_gather_single");
  print(name + " all_gather", all);
}

void run() {
  init_process_group({.backend = "gloo"});
  const auto mesh = DeviceMesh::init(at::kCPU, {2, get_world_size() / 2}, {"replicate", "shard"});
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const auto op : {c10d::ReduceOp::SUM, c10d::ReduceOp::AVG}) {
      const std::string name = std::string(c10::toString(dtype)) + (op == c10d::ReduceOp::SUM ? " sum" : " avg");
      print_collectives(name + " world", default_group(), dtype, op);
      print_collectives(name + " shard", mesh.get_group("shard"), dtype, op);
      print_collectives(name + " replicate", mesh.get_group("replicate"), dtype, op);
    }
  }
  barrier(default_group());
  destroy_process_group();
}

}  // namespace

int run_program(int, char**) {
  try {
    run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

const programs::Program program("distributed_values", &run_program);

}  // namespace distributed_values
