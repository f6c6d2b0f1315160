// Training steps of Llama's shapes under FSDP2 and FSDPMemTracker in C++, on the pretend GPU, as JSON: the seconds of
// each step, plain and tracked; the peak; and the process's peak of resident memory.
//   tracked_fsdp_step 8b|405b WORLD_SIZE STEPS
// bench/torch_tracked_fsdp_step.py does the same with torch's FSDPMemTracker under FakeTensorMode.
#include <ATen/Functions.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "fsdp/llama.h"
#include "plimsoll/distributed/device_mesh.h"
#include "plimsoll/distributed/process_group.h"
#include "plimsoll/fsdp/fully_shard.h"
#include "plimsoll/fsdp/param/materialize.h"
#include "plimsoll/nn/device_scope.h"
#include "plimsoll/nn/optim/adamw.h"
#include "plimsoll/tracker/fsdp_mem_tracker.h"

namespace {

using namespace plimsoll;

constexpr int kSequence = 8192;
const std::map<std::string, scenarios::LlamaOptions> kShapes = {
    {"8b", {128256, kSequence, 4096, 14336, 32, 8, 32, /*checkpointed=*/true}},
    {"405b", {128256, kSequence, 16384, 53248, 128, 8, 126, /*checkpointed=*/true}}};

std::vector<double> seconds_of(int steps, const std::function<void()>& step) {
  std::vector<double> seconds;
  for (int i = 0; i < steps; ++i) {
    const auto began = std::chrono::steady_clock::now();
    step();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  return seconds;
}

void print(const char* name, const std::vector<double>& seconds) {
  std::cout << '"' << name << "\":[";
  for (std::size_t i = 0; i < seconds.size(); ++i) std::cout << (i == 0 ? "" : ",") << seconds[i];
  std::cout << "],";
}

/// From /proc/self/status, in bytes.
std::int64_t status(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    std::int64_t kibibytes = 0;
    if (word == key + ":" && file >> kibibytes) return kibibytes << 10;
  }
  return -1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 || !kShapes.contains(argv[1])) {
    std::cerr << "usage: " << argv[0] << " 8b|405b WORLD_SIZE STEPS\n";
    return 2;
  }
  setenv("PLIMSOLL_GPU_PROFILE", PLIMSOLL_BENCH_PROFILE, /*overwrite=*/0);
  const int world_size = std::stoi(argv[2]), steps = std::stoi(argv[3]);
  distributed::init_process_group({.backend = "fake", .store = {}, .rank = 0, .world_size = world_size});
  auto model = [&] {
    const nn::DeviceScope meta(at::kMeta);
    return scenarios::Llama(kShapes.at(argv[1]));
  }();
  const fsdp::FullyShardOptions options{.mesh = distributed::DeviceMesh::init(at::kCUDA, {world_size}),
                                        .mp_policy = {.param_dtype = at::kBFloat16, .reduce_dtype = at::kFloat}};
  for (const auto& layer : *model->layers) fsdp::fully_shard(layer, options);
  fsdp::fully_shard(model, options);
  const at::Device gpu(at::kCUDA, 0);
  fsdp::to_empty(model, gpu);
  nn::AdamW optimizer(model->parameters(), {.implementation = nn::Implementation::kForeach});
  const auto tokens = at::empty({1, kSequence}, at::TensorOptions(gpu).dtype(at::kLong));
  const auto step = [&] {
    at::cross_entropy_loss(model(tokens).flatten(0, 1), tokens.flatten()).backward();
    optimizer.step();
    optimizer.zero_grad();
  };
  seconds_of(2, step);  // The optimizer's state, the allocator's segments.
  std::cout.precision(9);
  std::cout << "{";
  print("plain", seconds_of(steps, step));
  FSDPMemTracker tracker(model, optimizer);
  tracker.track_inputs(tokens);
  {
    const auto scope = tracker.enter();
    seconds_of(1, step);  // The first step names each parameter.
    print("tracked", seconds_of(steps, step));
  }
  std::cout << "\"peak\":" << to_json(tracker.snapshot(SnapshotKind::kPeak)) << ",\"resident\":" << status("VmHWM")
            << ",\"causes\":" << tracker.explain().causes.size() << "}\n";
}
