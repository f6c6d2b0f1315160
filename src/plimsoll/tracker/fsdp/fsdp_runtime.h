#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "plimsoll/fsdp/memory_use.h"
#include "plimsoll/fsdp/runtime_observer.h"

namespace plimsoll {

/// An FSDP2 runtime as a tracker sees it: plimsoll's own (native_fsdp.h), or torch's in Python. States (what one
/// fully_shard made) and groups (the parameters that travel together) go by keys, which are theirs while they live.
class FSDPRuntime {
 public:
  using Key = const void*;
  using Life = std::weak_ptr<const void>;

  struct Group {
    Key key = nullptr;
    Life life;
  };
  struct State {
    Key key = nullptr;
    Life life;
    std::vector<torch::nn::Module*> modules;  ///< Those that live.
    std::vector<Group> groups;
  };
  /// What a thread takes memory for.
  struct Use {
    fsdp::MemoryUse use{};
    Key group = nullptr;
  };

  /// What the runtime tells, on the thread that does the work. It does not throw.
  class Listener {
   public:
    /// One of the forward stages.
    virtual void state_in(fsdp::Stage stage, Key state) noexcept = 0;
    /// One of the others.
    virtual void group_in(fsdp::Stage stage, Key group) noexcept = 0;
    /// What the tensor's memory is used for from now on.
    virtual void memory(fsdp::MemoryUse use, const at::Tensor& tensor, Key group) noexcept = 0;

   protected:
    ~Listener() = default;
  };

  virtual ~FSDPRuntime() = default;

  /// The listener hears of it all until stop(), after which no call is under way. REQUIRES: once.
  virtual void listen(Listener& listener) = 0;
  virtual void stop() = 0;

  /// The state whose module this is; nothing where fully_shard was not applied to it.
  virtual std::optional<State> state_of(torch::nn::Module& module) = 0;
  /// What the root computes on.
  virtual at::Device device_of(torch::nn::Module& root) = 0;
  virtual void for_each_held(Key group, const std::function<void(fsdp::MemoryUse, const at::Tensor&)>& visit) const = 0;
  /// The whole parameters, while they are whole.
  virtual void for_each_unsharded(Key group, const std::function<void(const at::Tensor&)>& visit) const = 0;
  /// The group that a parameter, whole or not, belongs to; null for one that is not sharded.
  virtual Key group_of(const at::Tensor& parameter) const = 0;
  /// Of what this thread allocates on the device now. Called with the tracked ledger's lock held.
  virtual std::optional<Use> current_use(c10::Device device) const noexcept = 0;
};

}  // namespace plimsoll
