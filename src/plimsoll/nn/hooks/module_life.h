#pragma once

#include <torch/nn/module.h>

#include <memory>

namespace plimsoll::nn {

/// Whether the module was destroyed. False for a module that no shared pointer ever owned.
inline bool is_gone(const std::weak_ptr<torch::nn::Module>& module) {
  const std::weak_ptr<torch::nn::Module> never_owned;
  const bool owned = module.owner_before(never_owned) || never_owned.owner_before(module);
  return owned && module.expired();
}

}  // namespace plimsoll::nn
