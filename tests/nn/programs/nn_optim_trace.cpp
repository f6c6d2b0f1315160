// Runs optimizers for each case on standard input, one per line, and prints the numbers (device=cpu) or the memory
// events (device=cuda), one JSON object per line. test_nn_optim.py compares it with torch.optim.
//
// A line is `key=value` words. groups: parameters as dtype:sizes, joined by `+`, groups by `|`: f32:3x4+bf16:|f32:7.

#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/nn/optim/adam.h"
#include "plimsoll/nn/optim/adamw.h"
#include "plimsoll/nn/optim/clip_grad_norm.h"
#include "plimsoll/nn/optim/sgd.h"
#include "programs/programs.h"

#if __has_include(<c10/cuda/impl/cuda_cmake_macros.h>)  // Only a CUDA build of torch has it.
#include <c10/cuda/CUDACachingAllocator.h>
#define PLIMSOLL_TORCH_HAS_CUDA 1
#endif

namespace nn_optim_trace {

namespace {

using plimsoll::nn::Adam;
using plimsoll::nn::AdamOptions;
using plimsoll::nn::AdamW;
using plimsoll::nn::AdamWOptions;
using plimsoll::nn::Implementation;
using plimsoll::nn::Optimizer;
using plimsoll::nn::ParamGroup;
using plimsoll::nn::SGD;
using plimsoll::nn::SGDOptions;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

class Case {
 public:
  explicit Case(const std::string& line) {
    for (const std::string& word : split(line, ' ')) {
      const auto equals = word.find('=');
      TORCH_CHECK(equals != std::string::npos, "expected key=value, found '", word, "'");
      values_[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  bool has(const std::string& key) const { return values_.contains(key); }
  const std::string& text(const std::string& key) const { return values_.at(key); }
  double number(const std::string& key, double otherwise) const { return has(key) ? std::stod(text(key)) : otherwise; }
  bool flag(const std::string& key, bool otherwise = false) const { return number(key, otherwise) != 0; }

 private:
  std::map<std::string, std::string> values_;
};

Implementation implementation(const Case& c) {
  const std::map<std::string, Implementation> names = {{"default", Implementation::kDefault},
                                                       {"forloop", Implementation::kForLoop},
                                                       {"foreach", Implementation::kForeach},
                                                       {"fused", Implementation::kFused}};
  return names.at(c.text("implementation"));
}

at::Device device(const Case& c) { return at::Device(c.text("device")); }

at::Tensor make_parameter(const std::string& spec, std::int64_t index, at::Device device) {
  const auto colon = spec.find(':');
  const std::string name = spec.substr(0, colon);
  const at::ScalarType dtype = name == "bf16" ? at::kBFloat16 : name == "f64" ? at::kDouble : at::kFloat;
  std::vector<std::int64_t> sizes;
  for (const std::string& size : split(spec.substr(colon + 1), 'x')) sizes.push_back(std::stoll(size));
  at::Tensor tensor = at::empty(sizes, at::TensorOptions().dtype(dtype).device(device));
  if (device.is_cpu()) {
    const at::Tensor numbers = at::arange(tensor.numel()).mul(29).add(index * 7).remainder(101).sub(50);
    tensor.copy_(numbers.to(at::kDouble).div(32).view(sizes));
  }
  return tensor.set_requires_grad(true);
}

at::Tensor make_gradient(const at::Tensor& parameter, std::int64_t index, std::int64_t step) {
  at::Tensor gradient = at::empty(parameter.sizes(), parameter.options());
  if (parameter.is_cpu()) {
    const at::Tensor numbers =
        at::arange(parameter.numel()).mul(37).add(index * 11 + step * 101).remainder(193).sub(96);
    gradient.copy_(numbers.to(at::kDouble).div(64).view(parameter.sizes()));
  }
  return gradient;
}

/// The groups of the case; the second and later ones have separate options.
template <class Options, class GroupOptions>
std::vector<ParamGroup<GroupOptions>> make_groups(const Case& c, Options options) {
  std::vector<ParamGroup<GroupOptions>> groups;
  std::int64_t index = 0;
  for (const std::string& group : split(c.text("groups"), '|')) {
    std::vector<at::Tensor> parameters;
    for (const std::string& spec : split(group, '+')) parameters.push_back(make_parameter(spec, index++, device(c)));
    if (groups.empty()) {
      groups.push_back({std::move(parameters)});
      continue;
    }
    options.lr /= 2;
    options.weight_decay += 0.03125;
    groups.push_back({std::move(parameters), options});
  }
  return groups;
}

template <class Options>
Options adam_options(const Case& c) {
  Options options;
  options.lr = c.number("lr", 1e-3);
  options.betas = {c.number("beta1", 0.9), c.number("beta2", 0.999)};
  options.eps = c.number("eps", 1e-8);
  options.weight_decay = c.number("weight_decay", options.weight_decay);
  options.amsgrad = c.flag("amsgrad");
  options.maximize = c.flag("maximize");
  options.capturable = c.flag("capturable");
  options.implementation = implementation(c);
  return options;
}

std::unique_ptr<Optimizer> make_optimizer(const Case& c) {
  const std::string& kind = c.text("optimizer");
  if (kind == "adam") {
    const auto options = adam_options<AdamOptions>(c);
    return std::make_unique<Adam>(make_groups<AdamOptions, AdamOptions>(c, options), options);
  }
  if (kind == "adamw") {
    const auto options = adam_options<AdamWOptions>(c);
    return std::make_unique<AdamW>(make_groups<AdamWOptions, AdamOptions>(c, options), options);
  }
  TORCH_CHECK(kind == "sgd", "expected adam, adamw or sgd, found ", kind);
  const SGDOptions options = {.lr = c.number("lr", 1e-3),
                              .momentum = c.number("momentum", 0),
                              .dampening = c.number("dampening", 0),
                              .weight_decay = c.number("weight_decay", 0),
                              .nesterov = c.flag("nesterov"),
                              .maximize = c.flag("maximize"),
                              .implementation = implementation(c)};
  return std::make_unique<SGD>(make_groups<SGDOptions, SGDOptions>(c, options), options);
}

class Output {
 public:
  void tensor(const std::string& name, const at::Tensor& value) {
    const at::Tensor bytes = value.detach().reshape({-1}).contiguous();
    text_ << (empty_ ? "" : ", ") << "[\"" << name << "\", \"";
    const auto* data = static_cast<const unsigned char*>(bytes.const_data_ptr());
    for (std::size_t i = 0; i < bytes.nbytes(); ++i) {
      char hex[3];
      std::snprintf(hex, sizeof hex, "%02x", data[i]);
      text_ << hex;
    }
    text_ << "\"]";
    empty_ = false;
  }
  void event(const char* action, std::uintptr_t address, std::size_t size) {
    text_ << (empty_ ? "" : ", ") << "[\"" << action << "\", " << address << ", " << size << "]";
    empty_ = false;
  }
  std::string take() { return "[" + std::exchange(text_, {}).str() + "]"; }

 private:
  std::ostringstream text_;
  bool empty_ = true;
};

void dump(const Optimizer& optimizer, std::int64_t step, Output& output) {
  const std::string at = std::to_string(step) + ".";
  std::map<const at::TensorImpl*, std::string> names;
  for (const at::Tensor& parameter : optimizer.parameters()) {
    const std::string name = at + std::to_string(names.size());
    names[parameter.unsafeGetTensorImpl()] = name;
    output.tensor(name, parameter);
    if (parameter.grad().defined()) output.tensor(name + ".grad", parameter.grad());
  }
  optimizer.for_each_state([&](const at::Tensor& parameter, std::string_view name, const at::Tensor& state) {
    output.tensor(names.at(parameter.unsafeGetTensorImpl()) + "." + std::string(name), state);
  });
}

void train(const Case& c, Output* output) {
  const auto optimizer = make_optimizer(c);
  const std::vector<at::Tensor> parameters = optimizer->parameters();
  const auto without = static_cast<std::size_t>(c.number("without_gradient", -1));
  for (std::int64_t step = 0; step < c.number("steps", 3); ++step) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (i != without || step % 2 == 1) parameters[i].mutable_grad() = make_gradient(parameters[i], i, step);
    }
    if (c.has("clip")) {
      std::optional<bool> foreach;
      if (c.has("clip_foreach"))
        foreach
          = c.flag("clip_foreach");
      const at::Tensor norm = plimsoll::nn::clip_grad_norm_(parameters, c.number("clip", 1), c.number("norm_type", 2),
                                                            c.flag("error_if_nonfinite"), foreach);
      if (output != nullptr) output->tensor(std::to_string(step) + ".norm", norm);
    }
    optimizer->step();
    if (output != nullptr) dump(*optimizer, step, *output);
    optimizer->zero_grad(c.flag("set_to_none", true));
  }
}

#ifdef PLIMSOLL_TORCH_HAS_CUDA
Output* events = nullptr;

void record(const c10::cuda::CUDACachingAllocator::TraceEntry& entry) {
  using Entry = c10::cuda::CUDACachingAllocator::TraceEntry;
  if (events == nullptr) return;
  if (entry.action_ == Entry::ALLOC) events->event("alloc", entry.addr_, entry.size_);
  if (entry.action_ == Entry::FREE_COMPLETED) events->event("free_completed", entry.addr_, entry.size_);
}

void run(const Case& c) {
  Output output;
  if (device(c).is_cpu()) {
    train(c, &output);
  } else {
    c10::cuda::CUDACachingAllocator::emptyCache();
    events = &output;
    train(c, nullptr);
    events = nullptr;
  }
  std::cout << output.take() << "\n";
}

void prepare() {
  at::empty({1}, at::TensorOptions().device(at::kCUDA));  // The first use of the device creates the allocator.
  c10::cuda::CUDACachingAllocator::get()->attachAllocatorTraceTracker(record);
}
#else
void run(const Case& c) {
  Output output;
  train(c, &output);
  std::cout << output.take() << "\n";
}

void prepare() {}
#endif

}  // namespace

int run_program(int, char**) {
  try {
    prepare();
    for (std::string line; std::getline(std::cin, line);) run(Case(line));
  } catch (const std::exception& error) {
    std::cerr << "nn_optim_trace: " << error.what() << "\n";
    return 1;
  }
  return 0;
}

const programs::Program program("nn_optim_trace", &run_program);

}  // namespace nn_optim_trace
