#pragma once

#include "plimsoll/base/bytes.h"
#include "plimsoll/report/report.h"
#include "plimsoll/report/verdict.h"
#include "report/sample_modules.h"

/// Reports of plans made by hand, for the golden files.
namespace sample {

using namespace plimsoll::literals;
using namespace plimsoll::report;

inline StepPeaks plan_step(std::optional<std::int64_t> number, plimsoll::Bytes active) {
  const auto phase = [](plimsoll::Bytes bytes) {
    return PhasePeaks{bytes, bytes, bytes + 3_GiB, bytes / 2, bytes + 3_GiB};
  };
  return {number,
          active,
          active,
          active + 3_GiB,
          {{"forward", phase(active / 2)}, {"backward", phase(active)}, {"optimizer", phase(active / 3)}}};
}

/// `depth` 3: attention and feed-forward of each block too.
inline std::vector<ModuleRow> plan_modules() {
  std::vector<ModuleRow> modules{
      module("", "Llama", 8030261248, 56_GiB,
             {{"Activation", 38_GiB},
              {"OptState", 8_GiB},
              {"Sharded Param", 4_GiB},
              {"Unsharded Param", 2_GiB},
              {"Reduce Scatter", 2_GiB},
              {"Temp", 1_GiB},
              {"All Gather", 1_GiB}},
             true),
      module("tok_embeddings", "Embedding", 525336576, 7_GiB, {{"OptState", 512_MiB}, {"Sharded Param", 256_MiB}})};
  for (int i = 0; i < 32; ++i) {
    const std::string name = "layers." + std::to_string(i);
    const plimsoll::Bytes activation = i == 31 ? 2_GiB : 1_GiB;
    const plimsoll::Bytes highest = 10_GiB + 1_GiB * static_cast<plimsoll::Bytes>(i);
    modules.push_back(module(name, "Block", 218112000, highest,
                             {{"Activation", activation}, {"OptState", 208_MiB}, {"Sharded Param", 104_MiB}}, true));
    modules.push_back(module(name + ".attention", "Attention", 41943040, highest, {{"Activation", activation / 4}}));
    modules.push_back(
        module(name + ".feed_forward", "FeedForward", 176160768, highest, {{"Activation", activation / 2}}));
  }
  modules.push_back(module("norm", "RMSNorm", 4096, 50_GiB, {{"Activation", 64_MiB}, {"OptState", 4_KiB}}));
  modules.push_back(module("output", "Linear", 525336576, 56_GiB, {{"Activation", 3_GiB}, {"Temp", 1_GiB}}));
  return modules;
}

/// The report with its verdict.
inline Report judged(Report report) {
  report.verdict = verdict_of(report, report.verdict.reserve);
  return report;
}

inline Report plan_fits() {
  Report report;
  PlannedJob& job = report.as_planned();
  report.gpu = {"H100-80GB", "NVIDIA H100 80GB HBM3", 84943110144, "9.0", 132};
  job.model = {"llama3-8b", "llama", 8030261248, 8030261248, 32};
  job.job = {{"model", "llama3-8b"},
             {"gpu", "H100-80GB"},
             {"gpu_memory", nullptr},
             {"gpus", std::int64_t{8}},
             {"replicas", std::int64_t{1}},
             {"batch", std::int64_t{1}},
             {"seq-len", std::int64_t{8192}},
             {"grad_accum", std::int64_t{1}},
             {"param_dtype", "bf16"},
             {"reduce_dtype", "fp32"},
             {"master_dtype", "fp32"},
             {"checkpoint", "none"},
             {"optimizer", "adamw"},
             {"optimizer_impl", "foreach"},
             {"offload", "none"},
             {"clip_grad_norm", 1.0},
             {"keep_logits", false}};
  report.peak.active = report.peak.allocated = 56_GiB;
  report.peak.reserved = 59_GiB;
  report.peak.device = 60_GiB;
  report.peak.segments = 214;
  report.peak.step = 1;
  report.peak.phase = "backward";
  report.peak.device_parts = {59_GiB, 520_MiB, 480_MiB, 24_MiB};
  report.peak.module = "layers.31";
  report.peak.stage = "pre-backward";
  report.peak.categories = {{"Activation", 38_GiB},     {"OptState", 8_GiB},       {"Sharded Param", 4_GiB},
                            {"Unsharded Param", 2_GiB}, {"Reduce Scatter", 2_GiB}, {"Temp", 1_GiB},
                            {"All Gather", 1_GiB}};
  report.before_steps = StepPeaks{std::nullopt, 4_GiB, 4_GiB, 4_GiB, {{"other", {4_GiB, 4_GiB, 4_GiB, 4_GiB, 4_GiB}}}};
  report.steps = {plan_step(0, 52_GiB), plan_step(1, 56_GiB)};
  report.modules = plan_modules();
  report.causes = {{38_GiB,
                    "Activation",
                    "saved for backward",
                    {{"output", 3_GiB}, {"layers.31", 2_GiB}, {"layers.30", 1_GiB}},
                    600},
                   {12_GiB, "OptState", "state of the optimizer", {{"layers.0", 6_GiB}, {"layers.1", 6_GiB}}, 8},
                   {6_GiB, "Unsharded Param", "whole because its backward runs", {{"layers.31", 6_GiB}}, 9}};
  job.host = 0;
  job.ops = 48231;
  report.torch = "2.13.0+cu130";
  job.planner_step_seconds = 0.31;
  report.seconds = 1.12;
  return judged(report);
}

/// `plan_fits` with 36 GiB more of activations.
inline Report plan_does_not_fit() {
  Report report = plan_fits();
  const plimsoll::Bytes more = 36_GiB;
  for (auto& [name, value] : report.as_planned().job) {
    if (name == "batch") value = std::int64_t{2};
  }
  report.oom.emplace();
  report.oom->requested = 2_GiB;
  report.oom->device_free = 1_GiB;
  report.oom->device_total = 84943110144;
  report.oom->active = 74_GiB;
  report.oom->reserved = 77_GiB;
  report.oom->step = 0;
  report.oom->phase = "backward";
  report.oom->module = "layers.30";
  report.oom->message = "CUDA out of memory. Tried to allocate 2.00 GiB.";
  report.peak.active += more;
  report.peak.allocated += more;
  report.peak.reserved += more;
  report.peak.device += more;
  report.peak.segments = 333;
  report.peak.device_parts.segments += more;
  report.peak.categories[0].bytes += more;
  report.modules[0].at_peak[0].bytes += more;
  report.modules[0].total += more;
  report.modules[0].highest += more;
  report.causes[0].bytes += more;
  report.steps = {plan_step(0, 88_GiB), plan_step(1, 92_GiB)};
  return judged(report);
}

/// Experts, two replicas, parameters on the host.
inline Report plan_hsdp_offload() {
  Report report = plan_fits();
  report.as_planned().model = {"configs/mixtral \"8x7b\".json", "mixtral", 46702792704, 12879425536, 32};
  report.modules[0].parameters = report.as_planned().model.parameters;
  for (auto& [name, value] : report.as_planned().job) {
    if (name == "gpus") value = std::int64_t{16};
    if (name == "replicas") value = std::int64_t{2};
    if (name == "offload") value = "params";
    if (name == "clip_grad_norm") value = nullptr;
    if (name == "grad_accum") value = std::int64_t{4};
  }
  report.peak.step.reset();
  report.peak.phase = "other";
  report.peak.module.clear();
  report.peak.stage.clear();
  report.before_steps.reset();
  report.as_planned().host = 90_GiB;
  report.host_pinned = 64_GiB;
  report.alloc_retries = 2;
  report.as_planned().notes = {"routing is taken to be balanced: each expert gets the same number of tokens"};
  return judged(report);
}

}  // namespace sample
