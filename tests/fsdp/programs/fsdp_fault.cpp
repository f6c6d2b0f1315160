// One rank of endless training under FSDP over gloo; test_fsdp_faults.py kills one of the ranks. Prints the current
// step, and its error to standard error. `--hsdp` trains with replicas.

#include <ATen/Parallel.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "fsdp/small_net.h"
#include "programs/programs.h"

namespace fsdp_fault {

int run_program(int argc, char** argv) {
  using namespace plimsoll;
  try {
    at::set_num_threads(1);
    distributed::init_process_group({.backend = "gloo", .timeout = std::chrono::seconds(20)});
    small::Net net(256, 6);
    fsdp::FullyShardOptions options;
    if (argc > 1 && std::string(argv[1]) == "--hsdp") {
      options.mesh =
          distributed::DeviceMesh::init(at::kCPU, {2, distributed::get_world_size() / 2}, {"replicate", "shard"});
    }
    small::shard(net, options);
    for (int step = 0;; ++step) {
      std::cout << "step " << step << std::endl;
      small::loss_of(net, small::batch(step, 256)).backward();
      small::step(*net, 1e-4);
      small::zero_grad(*net);
    }
  } catch (const std::exception& error) {
    std::cerr << "fsdp_fault: " << error.what() << std::endl;
    std::_Exit(3);  // The group's threads may wait for a dead rank.
  }
}

const programs::Program program("fsdp_fault", &run_program);

}  // namespace fsdp_fault
