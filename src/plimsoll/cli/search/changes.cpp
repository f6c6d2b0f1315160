#include "plimsoll/cli/search/changes.h"

#include <algorithm>

#include "plimsoll/base/errors.h"
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

}  // namespace plimsoll::cli
