#pragma once

#include "plimsoll/base/bytes.h"
#include "plimsoll/report/report.h"
#include "report/sample_modules.h"
#include "report/sample_plan.h"

/// Reports made by hand, for the golden files.
namespace sample {

using namespace plimsoll::literals;
using namespace plimsoll::report;

inline StepPeaks step(std::optional<std::int64_t> number, plimsoll::Bytes active) {
  const auto phase = [](plimsoll::Bytes bytes) {
    return PhasePeaks{bytes, bytes, bytes + 2_GiB, bytes / 2, bytes + 2_GiB};
  };
  return {number,
          active,
          active,
          active + 2_GiB,
          {{"other", phase(active / 4)},
           {"forward", phase(active / 2)},
           {"backward", phase(active)},
           {"optimizer", phase(active / 3)}}};
}

/// A small model of four blocks under fully_shard, and its optimizer.
inline void attribute(Report& report) {
  report.peak.module = "layers.3";
  report.peak.stage = "pre-backward";
  report.peak.categories = {{"Activation", 12_GiB}, {"OptState", 6_GiB}, {"Sharded Param", 3_GiB}, {"Temp", 1_GiB}};
  report.modules = {module("", "Transformer", 1610612736, 22_GiB,
                           {{"Activation", 12_GiB}, {"OptState", 5_GiB}, {"Sharded Param", 3_GiB}, {"Temp", 1_GiB}},
                           true)};
  for (int i = 0; i < 4; ++i) {
    const std::string name = "layers." + std::to_string(i);
    const plimsoll::Bytes highest = 16_GiB + 1_GiB * static_cast<plimsoll::Bytes>(i);
    report.modules.push_back(module(name, "Block", 268435456, highest,
                                    {{"Activation", 2_GiB}, {"OptState", 1_GiB}, {"Sharded Param", 512_MiB}}, true));
    report.modules.push_back(module(name + ".mlp", "MLP", 178956970, highest, {{"Activation", 1_GiB}}));
  }
  report.modules.push_back(module("head", "Linear", 536870912, 22_GiB, {{"Activation", 4_GiB}, {"Temp", 1_GiB}}));
  report.modules.push_back(module("AdamW", "optimizer", 0, 0, {{"OptState", 1_GiB}}));
  report.causes = {
      {12_GiB, "Activation", "saved for backward", {{"head", 4_GiB}, {"layers.3", 2_GiB}, {"no module", 1_GiB}}, 40},
      {6_GiB, "OptState", "state of the optimizer", {}, 60},
      {3_GiB, "Sharded Param", "this rank's part", {{"layers.0", 1_GiB}, {"layers.1", 1_GiB}, {"layers.2", 1_GiB}}, 30},
      {1_GiB, "Temp", "made by backward", {{"head", 1_GiB}}, 30, true}};
}

/// As records are that say nothing of whose the memory was.
inline void forget_attribution(Report& report, const std::string& why = "") {
  report.peak.module.clear();
  report.peak.stage.clear();
  report.peak.categories.clear();
  report.modules.clear();
  report.causes.clear();
  report.attribution = why;
}

inline Report fits() {
  Report report;
  ScriptRun& run = report.subject.emplace<ScriptRun>();
  report.gpu = {"H100-80GB", "NVIDIA H100 80GB HBM3", 84943110144, "9.0", 132};
  run.gpus_per_node = 8;
  run.world_size = 64;
  run.rank = 3;
  run.processes = 1;
  run.script = "train.py";
  report.torch = "2.13.0+cu130";
  run.python = "3.11.7";
  run.complete = true;
  report.peak.active = 22_GiB;
  report.peak.allocated = 21_GiB;
  report.peak.reserved = 24_GiB;
  report.peak.device = 26_GiB;
  report.peak.segments = 118;
  report.peak.step = 2;
  report.peak.phase = "backward";
  report.peak.device_parts = {24_GiB, 520_MiB, 480_MiB, 32_MiB};
  attribute(report);
  report.before_steps = StepPeaks{std::nullopt, 2_GiB, 2_GiB, 2_GiB, {{"other", {2_GiB, 2_GiB, 2_GiB, 2_GiB, 2_GiB}}}};
  report.steps = {step(0, 20_GiB), step(1, 22_GiB), step(2, 22_GiB), step(3, 22_GiB)};
  run.finished_steps = 4;
  run.top = {{12_GiB, 64, {"model.py", 42, "forward", "return self.w2(F.silu(self.w1(x)))"}},
             {3_GiB, 1, {"train.py", 7, "<module>", "loss = F.cross_entropy(logits, labels)"}},
             {512_MiB, 3, {}}};
  run.top_total = 22_GiB;
  report.host_pinned = 1536_KiB;
  report.seconds = 6.54;
  run.stopped_after_steps = true;
  return judged(report);
}

inline Report does_not_fit() {
  Report report = fits();
  ScriptRun& run = report.as_script();
  run.stopped_after_steps = false;
  run.exit_code = 1;
  run.processes = 2;
  report.steps.resize(1);
  run.finished_steps = 1;
  report.after_steps = step(std::nullopt, 70_GiB);
  report.oom.emplace();
  report.oom->requested = 2_GiB;
  report.oom->device_free = 1_GiB;
  report.oom->device_total = 84943110144;
  report.oom->active = 70_GiB;
  report.oom->reserved = 77_GiB;
  report.oom->step = 1;
  report.oom->phase = "backward";
  report.oom->where = {"model.py", 42, "forward", "h = self.attention(x)"};
  report.oom->message = "CUDA out of memory. Tried to allocate 2.00 GiB.";
  report.oom->alive = {{60_GiB, 32, {"model.py", 40, "forward", "x = self.norm(x)"}}};
  report.oom->device_parts = {77_GiB, 520_MiB, 480_MiB, 32_MiB};
  run.error = ScriptError{"OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB."};
  run.other_devices = {{1, 3_MiB}};
  forget_attribution(report,
                     "categories need the native part of plimsoll, which is built for torch 2.13; this is torch 2.5.1");
  return judged(report);
}

/// Two models side by side, neither of them sharded, at rest.
inline Report with_warnings() {
  Report report = fits();
  ScriptRun& run = report.as_script();
  run.exit_code = 1;
  run.error = ScriptError{"ValueError", "bad batch\nin two lines"};
  report.peak.step.reset();
  report.peak.phase = "other";
  report.peak.module.clear();
  report.peak.stage.clear();
  report.peak.categories = {{"Parameter", 22_GiB}};
  report.modules = {module("Discriminator", "Discriminator", 1073741824, 5_GiB, {{"Parameter", 4_GiB}}),
                    module("Generator", "Generator", 4831838208, 21_GiB, {{"Parameter", 18_GiB}}),
                    module("Generator.up", "Sequential", 4831838208, 20_GiB, {{"Parameter", 18_GiB}}),
                    module("Generator.up.0", "Linear", 4831838208, 20_GiB, {{"Parameter", 18_GiB}})};
  report.causes = {{22_GiB, "Parameter", "alive at the peak", {{"Generator.up.0", 18_GiB}, {"Discriminator", 4_GiB}}}};
  run.read_backs = 5;
  run.read_back_lines = {
      {{"train.py", 9, "<module>", "if loss.item() > 3:"}, 4, 16, "aten::_local_scalar_dense", false},
      {{"data.py", 3, "pick", "rows = mask.nonzero()"}, 1, 8, "aten::nonzero", true}};
  run.unpretended = {"cusolverDnXgesvd", "cufftXtExec"};
  run.ooms_handled = 1;
  return judged(report);
}

}  // namespace sample
