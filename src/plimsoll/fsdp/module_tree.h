#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <string>
#include <utility>
#include <vector>

#include "plimsoll/fsdp/group/fsdp_param_group.h"

/// Ways through a tree of modules. torch's own need the root to be held by a shared pointer.
namespace plimsoll::fsdp {

struct NamedModule {
  std::string name;  ///< From the root, parts separated by dots; empty for the root.
  torch::nn::Module* module;
};

/// Parents before children, each module once.
std::vector<NamedModule> named_modules(torch::nn::Module& root);

/// Those of the modules that are below none of the others.
std::vector<torch::nn::Module*> root_modules(const std::vector<torch::nn::Module*>& modules);

/// The modules whose parameters belong to `roots`: those below them, children before parents, that have no state of
/// their own. A module of which all parameters are ignored, and which has no buffer, is left out.
std::vector<torch::nn::Module*> managed_modules(const std::vector<torch::nn::Module*>& roots,
                                                const std::vector<at::Tensor>& ignored_params);

struct ManagedTensors {
  std::vector<NamedParam> params;
  std::vector<at::Tensor> buffers;
};

/// Their parameters and buffers, each once. Throws for a parameter that FSDP manages elsewhere, and for one without
/// dimensions.
ManagedTensors managed_tensors(const std::vector<torch::nn::Module*>& modules,
                               const std::vector<at::Tensor>& ignored_params);

}  // namespace plimsoll::fsdp
