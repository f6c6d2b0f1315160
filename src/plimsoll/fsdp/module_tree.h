#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "plimsoll/fsdp/group/fsdp_param_group.h"

/// Walks through a tree of modules. torch's own functions need a shared pointer to the root.
namespace plimsoll::fsdp {

struct NamedModule {
  std::string name;  ///< From the root, parts separated by dots; empty for the root.
  torch::nn::Module* module;
};

/// Parents before children, each module once.
std::vector<NamedModule> named_modules(torch::nn::Module& root);

/// The modules that are not below another of `modules`.
std::vector<torch::nn::Module*> root_modules(const std::vector<torch::nn::Module*>& modules);

/// The modules whose parameters belong to `roots`: those below them without an FSDP state, children before parents. A
/// module is left out if all its parameters are ignored and it has no buffer.
std::vector<torch::nn::Module*> managed_modules(const std::vector<torch::nn::Module*>& roots,
                                                const std::vector<at::Tensor>& ignored_params);

struct ManagedTensors {
  std::vector<NamedParam> params;
  std::vector<at::Tensor> buffers;
};

/// The parameters and buffers of `modules`, each once. Throws for a parameter that another group manages, and for one
/// without dimensions.
ManagedTensors managed_tensors(const std::vector<torch::nn::Module*>& modules,
                               const std::vector<at::Tensor>& ignored_params);

}  // namespace plimsoll::fsdp
