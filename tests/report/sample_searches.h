#pragma once

#include "plimsoll/report/fit.h"
#include "plimsoll/report/sweep.h"
#include "plimsoll/report/text/sections.h"
#include "report/sample_plan.h"

/// What the other commands make of plans.
namespace sample {

/// `plan_does_not_fit`, with so much less on every book.
inline Report plan_with_less(plimsoll::Bytes less) {
  Report report = plan_does_not_fit();
  report.peak.active -= less;
  report.peak.reserved -= less;
  report.peak.device -= less;
  report.peak.device_parts.segments -= less;
  report.peak.categories[0].bytes -= less;
  if (report.peak.device <= report.gpu.memory) report.oom.reset();
  return judged(report);
}

inline std::vector<Saving> savings() {
  Report worse = plan_does_not_fit();
  worse.peak.device += 3_GiB;
  return {{"--offload params", plan_with_less(12_GiB), ""},
          {"--checkpoint full", plan_with_less(60_GiB), ""},
          {"--keep-logits", worse, ""},
          {"--reduce-dtype bf16", plan_does_not_fit(), ""},
          {"--gpus 12", std::nullopt, "12 GPUs: more than\nrows to shard"}};
}

inline Sweep sweep() {
  Sweep sweep{"llama3-8b", plan_fits().gpu, {"gpus", "seq-len", "checkpoint"}, {}};
  sweep.rows = {{{"8", "8192", "none"}, plan_fits(), ""},
                {{"8", "16384", "none"}, plan_does_not_fit(), ""},
                {{"16", "8192", "every:2"}, plan_hsdp_offload(), ""},
                {{"12", "8192", "none"}, std::nullopt, "12 GPUs: \"replicas\", 8, does not divide them\nand more"}};
  return sweep;
}

inline Fit fit() {
  Fit fit;
  fit.what = "batch";
  fit.model = "llama3-8b";
  fit.gpu = plan_fits().gpu;
  fit.limit = 1;
  fit.at_limit = plan_fits();
  fit.beyond = 2;
  fit.at_beyond = plan_does_not_fit();
  fit.probes = {{1, true}, {8, false}, {4, false}, {2, false}};
  return fit;
}

}  // namespace sample
