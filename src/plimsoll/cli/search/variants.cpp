#include "plimsoll/cli/search/variants.h"

#include <algorithm>

#include "plimsoll/base/errors.h"
#include "plimsoll/job/axes.h"
#include "plimsoll/job/check.h"
#include "plimsoll/job/fields.h"
#include "plimsoll/job/job_file.h"

namespace plimsoll::cli {
namespace {

using Settings = std::vector<job::Setting>;

bool is_allowed(const job::Job& job, const architecture::Architecture& model) {
  try {
    job::check(job, model);
    return true;
  } catch (const InvalidArgument&) {
    return false;
  }
}

class Changes {
 public:
  Changes(const job::Job& job, const architecture::Architecture& model) : job_(job), model_(model) {}

  void add(const Settings& settings) {
    Change change{.text = "", .job = job_};
    for (const job::Setting& setting : settings) {
      job::find_field(setting.name).set(change.job, setting.text);
      change.text += (change.text.empty() ? "--" : " --") + setting.name + " " + setting.text;
    }
    if (change.job == job_ || !is_allowed(change.job, model_)) return;
    const bool known =
        std::any_of(changes_.begin(), changes_.end(), [&](const Change& other) { return other.job == change.job; });
    if (!known) changes_.push_back(std::move(change));
  }

  std::vector<Change> take() { return std::move(changes_); }

 private:
  const job::Job& job_;
  const architecture::Architecture& model_;
  std::vector<Change> changes_;
};

/// The allocator's settings with expandable segments; other settings stay.
std::string with_expandable_segments(const std::string& conf) {
  constexpr const char* kOn = "expandable_segments:True";
  if (conf.find("expandable_segments") != std::string::npos) return conf == kOn ? conf : kOn;
  return conf.empty() ? kOn : conf + "," + kOn;
}

/// Flags with one value are fixed; the others are axes.
struct Split {
  JobOptions fixed;
  std::vector<job::Axis> axes;
};

Split split(const JobOptions& options) {
  Split result{.fixed = {.file = options.file, .flags = {}}, .axes = {}};
  for (const job::Setting& flag : options.flags) {
    if (flag.name == "model") {  // A path may contain any character.
      result.fixed.flags.push_back(flag);
      continue;
    }
    job::Axis axis = job::parse_axis(flag.name, flag.text);
    if (axis.values.size() > 1) {
      result.axes.push_back(std::move(axis));
    } else {
      result.fixed.flags.push_back({flag.name, axis.values.at(0)});
    }
  }
  if (result.axes.empty()) {
    throw InvalidArgument("nothing to sweep: give a flag several values, as in --batch 1,2,4 or --gpus 8..64*2");
  }
  return result;
}

}  // namespace

std::vector<Change> single_changes(const job::Job& job, const architecture::Architecture& model) {
  using Kind = job::Reshard::Kind;
  Changes changes(job, model);
  changes.add({{"checkpoint", "selective"}});
  changes.add({{"checkpoint", "full"}});
  changes.add({{"reshard-after-forward", "always"}});
  changes.add({{"reshard-after-forward", "never"}});
  // If nothing is freed after forward, the last block is kept too.
  if (job.reshard_after_forward.kind != Kind::kNever) changes.add({{"keep-last-block", "false"}});
  changes.add({{"wrap", "blocks"}});
  changes.add({{"wrap", "blocks:2"}});
  changes.add({{"wrap", "root"}});
  changes.add({{"optimizer-impl", "fused"}});
  changes.add({{"optimizer-impl", "forloop"}});
  changes.add({{"optimizer-impl", "foreach"}});
  changes.add({{"offload", "params"}});
  if (job.reduce_dtype == job::Dtype::kFp32) changes.add({{"reduce-dtype", "bf16"}});
  // The norms of GPT-2 are one operation in any case.
  if (model.family != architecture::Family::kGPT2) changes.add({{"norm", "fused"}});
  changes.add({{"keep-logits", "false"}});
  changes.add({{"loss-fp32", "false"}});
  if (job.batch % 2 == 0) {
    changes.add({{"batch", std::to_string(job.batch / 2)}, {"grad-accum", std::to_string(job.grad_accum * 2)}});
  }
  if (job.gpus <= (std::int64_t{1} << 29)) changes.add({{"gpus", std::to_string(job.gpus * 2)}});
  changes.add({{"replicas", "1"}});
  changes.add({{"alloc-conf", with_expandable_segments(job.alloc_conf.value_or(""))}});
  changes.add({{"clip-grad-norm", "none"}});
  return changes.take();
}

SweepJobs sweep_jobs(const JobOptions& options, const Installation& installation) {
  const Split parts = split(options);
  const ReadJob first = read_job(parts.fixed);
  const architecture::Architecture model = model_of(first.job);
  SweepJobs sweep{.axes = {}, .rows = {}, .file = first.file};
  for (const job::Axis& axis : parts.axes) sweep.axes.push_back(axis.field->name);
  for (const job::Job& combination : job::combinations({}, parts.axes)) {
    SweepJob& row = sweep.rows.emplace_back();
    std::vector<job::Setting> settings;
    for (const job::Axis& axis : parts.axes) {
      row.values.push_back(axis.field->get(combination).value_or(""));
      settings.push_back({axis.field->name, row.values.back()});
    }
    // Read the job file again: fields that torchtitan derives from a global batch depend on the values.
    try {
      job::Job job = read_job(parts.fixed, settings).job;
      check_job(job, model, installation);
      row.job = std::move(job);
    } catch (const InvalidArgument& error) {
      row.error = error.what();
    } catch (const FormatError& error) {
      row.error = error.what();
    }
  }
  const bool any = std::any_of(sweep.rows.begin(), sweep.rows.end(), [](const SweepJob& row) { return row.job; });
  if (!any) {
    throw InvalidArgument("none of the " + std::to_string(sweep.rows.size()) +
                          " combinations can be run. The first: " + sweep.rows.front().error);
  }
  return sweep;
}

}  // namespace plimsoll::cli
