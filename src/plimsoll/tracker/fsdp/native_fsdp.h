#pragma once

#include <optional>

#include "plimsoll/fsdp/runtime_observer.h"
#include "plimsoll/tracker/fsdp/fsdp_runtime.h"

namespace plimsoll::inline tracker {

/// The runtime of plimsoll::fsdp, which reports its own work.
class NativeFSDP final : public FSDPRuntime, public fsdp::RuntimeObserver {
 public:
  void listen(Listener& listener) override;
  void stop() override;
  std::optional<State> state_of(torch::nn::Module& module) override;
  at::Device device_of(torch::nn::Module& root) override;
  void for_each_held(Key group, const std::function<void(fsdp::MemoryUse, const at::Tensor&)>& visit) const override;
  void for_each_unsharded(Key group, const std::function<void(const at::Tensor&)>& visit) const override;
  Key group_of(const at::Tensor& parameter) const override;
  std::optional<Use> current_use(c10::Device device) const noexcept override;

 private:
  void on_stage(fsdp::Stage stage, const fsdp::FSDPState& state) noexcept override;
  void on_stage(fsdp::Stage stage, const fsdp::FSDPParamGroup& group) noexcept override;
  void on_memory(fsdp::MemoryUse use, const at::Tensor& tensor, const fsdp::FSDPParamGroup* group) noexcept override;

  Listener* listener_ = nullptr;
  std::optional<fsdp::RuntimeObservation> observation_;
};

}  // namespace plimsoll::inline tracker
