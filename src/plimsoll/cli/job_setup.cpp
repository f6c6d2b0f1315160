#include "plimsoll/cli/job_setup.h"

#include <ostream>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/installation.h"
#include "plimsoll/job/check.h"
#include "plimsoll/job/fields.h"
#include "plimsoll/job/model.h"
#include "plimsoll/job/values.h"
#include "plimsoll/job/worker_protocol.h"

namespace plimsoll::cli {

ReadJob read_job(const JobOptions& options, const std::vector<job::Setting>& more) {
  std::vector<job::Setting> flags = options.flags;
  flags.insert(flags.end(), more.begin(), more.end());
  ReadJob read;
  if (options.file) {
    read.file = job::read_job_file(*options.file, read.job, flags);
  } else {
    for (const job::Setting& flag : flags) job::find_field(flag.name).set(read.job, flag.text);
  }
  if (read.job.model.empty()) {
    throw InvalidArgument("no MODEL given, and " + options.file.value_or("the command line") +
                          " names none: write model = \"llama3-8b\" in it, or name one on the command line");
  }
  return read;
}

void print_file_notes(const JobOptions& options, const job::JobFile& file, bool quiet, std::ostream& err) {
  if (!options.file || !file.torchtitan || quiet) return;
  const std::string start = "plimsoll: " + *options.file + " is a torchtitan file; ";
  if (!file.passed_over.empty()) {
    err << start << "ignored, no effect on memory: " << job::listed(file.passed_over, ", ") << "\n";
  }
  if (!file.assumed.empty()) {
    err << start << "torchtitan's defaults are used for: " << job::listed(file.assumed, ", ") << "\n";
  }
}

architecture::Architecture model_of(const job::Job& job) {
  architecture::Architecture model = job::find_model(job.model);
  architecture::count_parameters(model);
  return model;
}

void check_job(const job::Job& job, const architecture::Architecture& model, const Installation& installation) {
  job::check(job, model);
  profile_for(job.gpu, job.gpu_memory, installation);
}

report::Gpu card_of(const job::Job& job, const Installation& installation) {
  return job::gpu_of(profile_for(job.gpu, job.gpu_memory, installation));
}

PlanRequest request_for(const job::Job& job, const Installation& installation, std::int64_t depth) {
  return {.job = job, .profile = profile_file(job.gpu, installation), .depth = depth};
}

}  // namespace plimsoll::cli
