#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/cli/grammar/common_flags.h"
#include "plimsoll/cli/installation.h"
#include "plimsoll/cli/planning.h"
#include "plimsoll/job/job.h"
#include "plimsoll/report/report.h"

/// From what the user wrote to jobs that can be run. What is wrong is found here, before anything is started: every
/// function throws InvalidArgument or FormatError that says what was found and what to do.
namespace plimsoll::cli {

/// What flags and file describe, and what there is to say about the file.
struct ReadJob {
  job::Job job;
  job::JobFile file;
};

/// `more` goes over the flags of the options.
ReadJob read_job(const JobOptions& options, const std::vector<job::Setting>& more = {});

/// Says in one line which fields of torchtitan's were passed over, in another which of its defaults were assumed.
void tell_about_file(const JobOptions& options, const job::JobFile& file, bool quiet, std::ostream& err);

/// The model that the job names, with its parameters counted once: a count that overflows is found here.
architecture::Architecture model_of(const job::Job& job);

/// Checks the job against the model and the card.
void check_job(const job::Job& job, const architecture::Architecture& model, const Installation& installation);

/// The job's card with its memory. REQUIRES: check_job holds.
report::Gpu card_of(const job::Job& job, const Installation& installation);

/// REQUIRES: check_job holds.
PlanRequest request_for(const job::Job& job, const Installation& installation, std::int64_t depth = 2);

}  // namespace plimsoll::cli
