#pragma once

#include <torch/nn/module.h>

#include <concepts>

namespace plimsoll::fsdp {

/// A module, given by reference, by shared pointer or by one of torch's holders.
class ModuleRef {
 public:
  ModuleRef(torch::nn::Module& module) : module_(&module) {}  // NOLINT: meant to convert

  template <class Holder>
    requires requires(const Holder& holder) {
      { *holder } -> std::convertible_to<const torch::nn::Module&>;
    }
  ModuleRef(const Holder& holder)
      : module_(const_cast<torch::nn::Module*>(static_cast<const torch::nn::Module*>(&*holder))) {}  // NOLINT

  torch::nn::Module& operator*() const { return *module_; }
  torch::nn::Module* operator->() const { return module_; }

 private:
  torch::nn::Module* module_;
};

}  // namespace plimsoll::fsdp
