#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/job/check.h"
#include "plimsoll/job/job.h"
#include "plimsoll/models/language_model.h"
#include "plimsoll/nn/optim/optimizer.h"
#include "plimsoll/plan/idle_host.h"
#include "plimsoll/plan/phase_meter.h"

namespace plimsoll::plan {

/// A job is one rank's, on the only GPU of its process.
inline constexpr std::string_view kDevice = "cuda:0";

/// A job as a training script: examples/train_language_model.py, statement by statement. More than one GPU: built on
/// meta and sharded by FSDP2. One: built on it, and run under autocast where it computes in another dtype.
class Trainer {
 public:
  /// Builds model and optimizer, as one rank of the job's world. Makes the default process group, so there is one
  /// trainer a process. REQUIRES: job::check holds.
  Trainer(const job::Job& job, const architecture::Architecture& architecture);
  ~Trainer();

  models::LanguageModel& model() { return model_; }
  nn::Optimizer& optimizer() { return *optimizer_; }
  bool offloads() const { return job_.offload == job::Offload::kParams; }
  bool sharded() const { return job::is_sharded(job_); }
  /// Of each module by its path, before it was sharded.
  const std::map<std::string, std::int64_t>& parameters_of() const { return parameters_of_; }

  /// Called with each batch before it is used.
  std::function<void(const at::Tensor& tokens, const at::Tensor& targets)> on_inputs;

  /// All steps of the job.
  void run(PhaseMeter& meter);

 private:
  /// Where parameters are offloaded: the host does not compute.
  struct HostScope {
    nn::DispatchModeScope here;
    nn::BackwardModeScope backward;
  };
  std::unique_ptr<HostScope> idle_host();
  void shard();
  void train_micro_batch(std::int64_t micro, PhaseMeter& meter);

  IdleHost idle_host_;
  job::Job job_;
  std::int64_t sequence_;
  std::int64_t experts_ = 0;
  at::Device device_;
  models::LanguageModel model_{nullptr};
  std::map<std::string, std::int64_t> parameters_of_;
  std::vector<at::Tensor> parameters_;
  std::unique_ptr<nn::Optimizer> optimizer_;
  at::Tensor tokens_, targets_, logits_,
      loss_;  ///< As a script's variables, each holds its value until the next one is there.
};

}  // namespace plimsoll::plan
