#pragma once

#include "plimsoll/base/bytes.h"
#include "plimsoll/report/run_report.h"

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

inline RunReport fits() {
  RunReport report;
  report.gpu = {"H100-80GB", "NVIDIA H100 80GB HBM3", 84943110144, 9, 0, 132};
  report.gpus_per_node = 8;
  report.world_size = 64;
  report.rank = 3;
  report.recorded = true;
  report.processes = 1;
  report.script = "train.py";
  report.torch = "2.13.0+cu130";
  report.python = "3.11.7";
  report.complete = true;
  report.peak = {22_GiB, 21_GiB, 24_GiB, 26_GiB, 118, 2, "backward", {24_GiB, 520_MiB, 480_MiB, 32_MiB}};
  report.before_steps = StepPeaks{std::nullopt, 2_GiB, 2_GiB, 2_GiB, {{"other", {2_GiB, 2_GiB, 2_GiB, 2_GiB, 2_GiB}}}};
  report.steps = {step(0, 20_GiB), step(1, 22_GiB), step(2, 22_GiB), step(3, 22_GiB)};
  report.finished_steps = 4;
  report.top = {{12_GiB, 64, {"model.py", 42, "forward", "return self.w2(F.silu(self.w1(x)))"}},
                {3_GiB, 1, {"train.py", 7, "<module>", "loss = F.cross_entropy(logits, labels)"}},
                {512_MiB, 3, {}}};
  report.top_total = 22_GiB;
  report.host_pinned = 1536_KiB;
  report.seconds = 6.54;
  report.stopped_after_steps = true;
  return report;
}

inline RunReport does_not_fit() {
  RunReport report = fits();
  report.stopped_after_steps = false;
  report.exit_code = 1;
  report.processes = 2;
  report.steps.resize(1);
  report.finished_steps = 1;
  report.after_steps = step(std::nullopt, 70_GiB);
  report.oom = OutOfMemory{2_GiB,
                           1_GiB,
                           84943110144,
                           70_GiB,
                           77_GiB,
                           1,
                           "backward",
                           {"model.py", 42, "forward", "h = self.attention(x)"},
                           "CUDA out of memory. Tried to allocate 2.00 GiB.",
                           {{60_GiB, 32, {"model.py", 40, "forward", "x = self.norm(x)"}}}};
  report.error = ScriptError{"OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB."};
  report.other_devices = {{1, 3_MiB}};
  return report;
}

inline RunReport with_warnings() {
  RunReport report = fits();
  report.exit_code = 1;
  report.error = ScriptError{"ValueError", "bad batch\nin two lines"};
  report.peak.step.reset();
  report.peak.phase = "other";
  report.read_backs = 5;
  report.read_back_lines = {
      {{"train.py", 9, "<module>", "if loss.item() > 3:"}, 4, 16, "aten::_local_scalar_dense", false},
      {{"data.py", 3, "pick", "rows = mask.nonzero()"}, 1, 8, "aten::nonzero", true}};
  report.unpretended = {"cusolverDnXgesvd", "cufftXtExec"};
  report.ooms_handled = 1;
  return report;
}

}  // namespace sample
