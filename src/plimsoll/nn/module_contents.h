#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/nn/hooks/hooks.h"

/// The contents of a module of any front end.
namespace plimsoll::nn {

using NamedModules = std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>>;

/// Represents a module of another front end (Python's), which knows its current contents. It is called through its
/// hooks only (HookedCall), and lives as long as the module that it represents.
class ForeignModule : public torch::nn::Module, public Hookable {
 public:
  virtual std::string type_name() const = 0;
  virtual NamedModules own_children() const = 0;
  virtual std::vector<at::Tensor> own_parameters() const = 0;
  virtual std::vector<at::Tensor> own_buffers() const = 0;
};

/// Its children by name, in order.
NamedModules children_of(const torch::nn::Module& module);
/// Its own parameters and buffers, without those of its children. All are defined.
std::vector<at::Tensor> parameters_of(const torch::nn::Module& module);
std::vector<at::Tensor> buffers_of(const torch::nn::Module& module);

}  // namespace plimsoll::nn
