// One training step under MemTracker for each case on standard input ("MODEL OPTIMIZER DEVICE"); what it saw as JSON.
// tests/python/trackers/test_cpp_tracker_against_torch.py compares it with torch's own MemTracker around the same step
// in Python.
#include <ATen/Functions.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "plimsoll/nn/optim/adamw.h"
#include "plimsoll/nn/optim/sgd.h"
#include "plimsoll/tracker/mem_tracker.h"
#include "programs/programs.h"
#include "tracker/models.h"

namespace tracker_scenarios {

namespace {

using namespace plimsoll;
using Json = nlohmann::ordered_json;

Json to_value(const Snapshot& snapshot) { return Json::parse(to_json(snapshot)); }

std::unique_ptr<nn::Optimizer> optimizer_of(const std::string& name, std::vector<at::Tensor> parameters) {
  if (name == "sgd") return std::make_unique<nn::SGD>(parameters, nn::SGDOptions{.lr = 0.01, .momentum = 0.9});
  if (name == "adamw_foreach") {
    return std::make_unique<nn::AdamW>(parameters, nn::AdamWOptions{.implementation = nn::Implementation::kForeach});
  }
  if (name == "adamw_fused") {
    return std::make_unique<nn::AdamW>(parameters, nn::AdamWOptions{.implementation = nn::Implementation::kFused});
  }
  throw std::invalid_argument("no optimizer " + name);
}

/// Each once: C++ lists a tied parameter as often as it is registered.
std::vector<at::Tensor> parameters_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> parameters;
  for (const auto& parameter : module.parameters()) {
    if (std::none_of(parameters.begin(), parameters.end(),
                     [&](const auto& known) { return known.is_same(parameter); })) {
      parameters.push_back(parameter);
    }
  }
  return parameters;
}

template <class Model>
Json run(Model model, const std::string& optimizer_name, at::Tensor batch, at::Device device) {
  model->to(device);
  batch = batch.to(device);
  auto optimizer = optimizer_of(optimizer_name, parameters_of(*model));
  Json result;
  MemTracker tracker;
  tracker.track_external(model, *optimizer, batch);
  const auto look = [&](const char* point) { result["points"][point] = to_value(tracker.snapshot()); };
  {
    const auto scope = tracker.enter();
    look("before");
    {
      auto output = model(batch);
      auto loss = output.square().mean();
      look("forward");
      loss.backward();
      look("backward");
    }
    look("loss dropped");
    optimizer->step();
    look("step");
    optimizer->zero_grad();
    look("zero_grad");
  }
  result["peak"] = to_value(tracker.snapshot(SnapshotKind::kPeak));
  for (const auto& module : tracker.module_stats()) {
    auto& entry = result["modules"][module.fqn];
    entry["parameter"] = module.parameter_bytes;
    entry["buffer"] = module.buffer_bytes;
    entry["input"] = module.input_bytes;
    entry["output"] = module.output_bytes;
    for (const auto& [state, snapshots] : module.snapshots) {
      for (const auto& snapshot : snapshots)
        entry["states"][std::string(ledger::name(state))].push_back(to_value(snapshot));
    }
  }
  return result;
}

Json run(const std::string& model, const std::string& optimizer, at::Device device) {
  at::manual_seed(0);
  const auto tokens = [] { return at::arange(2 * 20).view({2, 20}); };
  if (model == "mlp") return run(models::MLP(40, 300, 30), optimizer, at::ones({16, 40}), device);
  if (model == "twice") return run(models::Twice(70), optimizer, at::ones({9, 70}), device);
  if (model == "conv") return run(models::ConvNet(), optimizer, at::ones({4, 3, 16, 16}), device);
  models::TransformerOptions options;
  options.checkpoint = model == "transformer_checkpointed";
  options.tied = model == "transformer_tied";
  if (options.checkpoint || options.tied || model == "transformer") {
    return run(models::Transformer(options), optimizer, tokens(), device);
  }
  throw std::invalid_argument("no model " + model);
}

}  // namespace

int run_program(int argc, char** argv) {
  // Cases on standard input, one a line: "MODEL OPTIMIZER DEVICE".
  if (argc != 1) {
    std::cerr << "usage: " << argv[0] << " < cases\n";
    return 2;
  }
  Json all = Json::object();
  std::string model, optimizer, device;
  while (std::cin >> model >> optimizer >> device) {
    all[model + " " + optimizer + " " + device] = run(model, optimizer, at::Device(device));
  }
  std::cout << all.dump() << "\n";
  return 0;
}

const programs::Program program("tracker_scenarios", &run_program);

}  // namespace tracker_scenarios
