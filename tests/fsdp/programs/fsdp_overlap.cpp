// Records the work on the streams of the pretend GPU in training under FSDP, as one rank of many. For each case on
// standard input: one file per phase in the given folder, and the phases' names as a line of JSON.
// tests/python/programs/fsdp_overlap.py does the same for Python's FSDP2; test_fsdp_overlap.py compares the two.

#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "fsdp/training.h"
#include "plimsoll/distributed/lone_store.h"
#include "programs/programs.h"

#if __has_include(<c10/cuda/impl/cuda_cmake_macros.h>)  // Only a CUDA build of torch has it.
#include "plimsoll/pretend/model/control_c.h"

namespace fsdp_overlap {

namespace {

using namespace plimsoll;
using scenarios::Case;

void start_world(int world, int rank) {
  distributed::destroy_process_group();
  distributed::init_process_group({.backend = "nccl",
                                   .store = c10::make_intrusive<plimsoll::distributed::LoneStore>(),
                                   .rank = rank,
                                   .world_size = world});
}

nlohmann::json run(const Case& c, const std::string& folder) {
  start_world(c.number("world"), c.number("rank"));
  nlohmann::json phases = nlohmann::json::array();
  const auto look = [&](const std::string& phase) {
    plimsoll_log_work((folder + "." + std::to_string(phases.size())).c_str());
    phases.push_back(phase);
  };
  scenarios::with_training(c, at::kCUDA, look, [&](auto training) {
    training->run(c.number("rank"), [](int, const std::vector<at::Tensor>&) {});
    plimsoll_log_work(nullptr);
  });
  return phases;
}

}  // namespace

int run_program(int, char** argv) {
  std::string line;
  try {
    run(Case("world=2 rank=0 model=network"), std::string(argv[1]) + "/warm_up");
    for (int index = 0; std::getline(std::cin, line); ++index) {
      std::cout << run(Case(line), std::string(argv[1]) + "/" + std::to_string(index)).dump() << std::endl;
    }
    distributed::destroy_process_group();
  } catch (const std::exception& error) {
    std::cerr << "fsdp_overlap: " << line << ": " << error.what() << "\n";
    return 1;
  }
  return 0;
}
const programs::Program program("fsdp_overlap", &run_program);

}  // namespace fsdp_overlap

#else

namespace fsdp_overlap {

int run_program(int, char**) {
  std::cerr << "fsdp_overlap: torch is not a CUDA build\n";
  return 1;
}

const programs::Program program("fsdp_overlap", &run_program);

}  // namespace fsdp_overlap

#endif
