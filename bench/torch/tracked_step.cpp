// The cost of MemTracker in a training step: `tracked_step cpu|llama STEPS` prints the seconds of each step, plain and
// tracked alternating, as JSON.
#include <ATen/Functions.h>
#include <c10/core/DefaultDtype.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "llama.h"
#include "plimsoll/nn/device_scope.h"
#include "plimsoll/nn/optim/adamw.h"
#include "plimsoll/tracker/mem_tracker.h"
#include "tracker/models.h"

namespace {

using namespace plimsoll;

double seconds_of(const std::function<void()>& step) {
  const auto began = std::chrono::steady_clock::now();
  step();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

void print(const char* name, const std::vector<double>& seconds, const char* after) {
  std::cout << '"' << name << "\":[";
  for (std::size_t i = 0; i < seconds.size(); ++i) std::cout << (i == 0 ? "" : ",") << seconds[i];
  std::cout << "]" << after;
}

template <class Model>
void measure(Model model, nn::Optimizer& optimizer, const std::function<at::Tensor()>& loss, int steps) {
  const auto step = [&] {
    loss().backward();
    optimizer.step();
    optimizer.zero_grad();
  };
  for (int i = 0; i < 2; ++i) step();  // The optimizer's state, the allocator's segments.
  std::vector<double> plain, tracked;
  for (int i = 0; i < steps; ++i) {
    plain.push_back(seconds_of(step));
    MemTracker tracker;
    tracker.track_external(model, optimizer);
    const auto scope = tracker.enter();
    step();  // The first step names every parameter.
    tracked.push_back(seconds_of(step));
  }
  std::cout << "{";
  print("plain", plain, ",");
  print("tracked", tracked, "}\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " cpu|llama STEPS\n";
    return 2;
  }
  std::cout.precision(9);
  const int steps = std::stoi(argv[2]);
  if (std::strcmp(argv[1], "cpu") == 0) {
    models::Transformer model(models::TransformerOptions{.vocabulary = 1000, .dim = 512, .heads = 8, .layers = 8});
    nn::AdamW optimizer(model->parameters(), {.implementation = nn::Implementation::kForeach});
    const auto tokens = at::arange(4 * 64).view({4, 64});
    measure(model, optimizer, [&] { return model(tokens).square().mean(); }, steps);
    return 0;
  }
  // 180 GB hold parameters, gradients, state and all activations. A profile of the user overrides this one.
  setenv("PLIMSOLL_GPU_PROFILE", PLIMSOLL_BENCH_PROFILE, /*overwrite=*/0);
  const at::Device gpu(at::kCUDA, 0);
  c10::set_default_dtype(caffe2::TypeMeta::Make<c10::BFloat16>());
  auto model = [&] {
    const nn::DeviceScope scope(gpu);
    return bench::Llama(bench::LlamaShape{});
  }();
  nn::AdamW optimizer(model->parameters(), {.implementation = nn::Implementation::kForeach});
  const auto tokens = at::empty({1, 8192}, at::TensorOptions(gpu).dtype(at::kLong));
  const auto loss = [&] {
    return at::cross_entropy_loss(model(tokens).flatten(0, 1).to(at::kFloat), tokens.flatten());
  };
  measure(model, optimizer, loss, steps);
}
