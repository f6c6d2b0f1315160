// One rank of a training over gloo that loads and saves its state, for each case on standard input. test_fsdp_state.py
// compares the files with the state of Python's FSDP2 after the same training.
//
// Words of a case besides those of training.h: load=PATH before the first step, save=FOLDER after the last,
// form=full|sharded, file_bytes=N.

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <exception>
#include <iostream>
#include <string>

#include "fsdp/training.h"
#include "plimsoll/distributed/collectives.h"
#include "plimsoll/fsdp/checkpoint/files.h"
#include "plimsoll/fsdp/checkpoint/full_state.h"
#include "programs/programs.h"

namespace fsdp_resume {

namespace {

using namespace plimsoll;
using scenarios::Case;

template <class Training>
void run(Training& training, const Case& c) {
  auto& model = const_cast<torch::nn::Module&>(training.model());
  if (c.has("load")) fsdp::load_state(model, c.text("load"));
  training.run(distributed::get_rank(), [](int, const std::vector<at::Tensor>&) {});
  const auto form = c.text("form", "full") == "full" ? fsdp::CheckpointForm::kFull : fsdp::CheckpointForm::kSharded;
  fsdp::SaveOptions options = {.form = form};
  if (c.has("file_bytes")) options.max_file_bytes = static_cast<Bytes>(c.number("file_bytes"));
  fsdp::save_state(model, c.text("save"), options);
}

}  // namespace

int run_program(int, char**) {
  std::string line;
  try {
    at::set_num_threads(1);
    distributed::init_process_group({.backend = "gloo"});
    while (std::getline(std::cin, line)) {
      const Case c(line);
      scenarios::with_training(c, at::kCPU, [](const std::string&) {}, [&](auto training) { run(*training, c); });
      distributed::barrier(distributed::default_group());
    }
    distributed::destroy_process_group();
  } catch (const std::exception& error) {
    std::cerr << "fsdp_resume: " << line << ": " << error.what() << "\n";
    return 1;
  }
  return 0;
}

const programs::Program program("fsdp_resume", &run_program);

}  // namespace fsdp_resume
