#include "plimsoll/cli/search/sweep_rows.h"

#include <algorithm>

#include "plimsoll/base/errors.h"
#include "plimsoll/job/axes.h"

namespace plimsoll::cli {
namespace {

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
