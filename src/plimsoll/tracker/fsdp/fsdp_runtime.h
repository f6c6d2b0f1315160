#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "plimsoll/fsdp/runtime_observer.h"

namespace plimsoll::inline tracker {

/// An FSDP2 runtime as a tracker sees it: plimsoll's own (native_fsdp.cpp), or torch's in Python. A state is the result
/// of one fully_shard; a group is the parameters that are gathered together. Each has a key for its life.
class FSDPRuntime {
 public:
  using Key = const void*;
  using Life = std::weak_ptr<const void>;
  using VisitTensor = std::function<void(const at::Tensor&)>;
  using VisitHeld = std::function<void(fsdp::MemoryUse, const at::Tensor&)>;

  struct Group {
    Key key = nullptr;
    Life life;
  };
  struct State {
    Key key = nullptr;
    Life life;
    std::vector<torch::nn::Module*> modules;  ///< The live ones.
    std::vector<Group> groups;
  };
  /// The use of memory that a thread allocates.
  struct Use {
    fsdp::MemoryUse use{};
    Key group = nullptr;
  };

  /// Gets the events of the runtime, on the thread that does the work. Must not throw.
  class Listener {
   public:
    /// One of the forward stages.
    virtual void state_in(fsdp::Stage stage, Key state) noexcept = 0;
    /// One of the others.
    virtual void group_in(fsdp::Stage stage, Key group) noexcept = 0;
    /// The use of the tensor's memory from now on.
    virtual void memory(fsdp::MemoryUse use, const at::Tensor& tensor, Key group) noexcept = 0;

   protected:
    ~Listener() = default;
  };

  virtual ~FSDPRuntime() = default;

  /// Sends all events to the listener until stop(). After stop() no call is under way. REQUIRES: once.
  virtual void listen(Listener& listener) = 0;
  virtual void stop() = 0;

  /// The state of the module; nullopt if fully_shard was not applied to it.
  virtual std::optional<State> state_of(torch::nn::Module& module) = 0;
  /// The device that the root computes on.
  virtual at::Device device_of(torch::nn::Module& root) = 0;
  virtual void for_each_held(Key group, const VisitHeld& visit) const = 0;
  /// The whole parameters, while they are whole.
  virtual void for_each_unsharded(Key group, const VisitTensor& visit) const = 0;
  /// The group of a parameter, whole or sharded; null for a parameter that FSDP2 does not manage.
  virtual Key group_of(const at::Tensor& parameter) const = 0;
  /// The use of memory that this thread allocates on the device now. Called with the tracked ledger's lock held.
  virtual std::optional<Use> current_use(c10::Device device) const noexcept = 0;
};

}  // namespace plimsoll::inline tracker
