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

/// Makes jobs from the command line, and checks them before anything starts. Every function throws InvalidArgument or
/// FormatError for wrong input.
namespace plimsoll::cli {

/// The job of the flags and the job file, and notes on the file.
struct ReadJob {
  job::Job job;
  job::JobFile file;
};

/// `more` wins over the flags of the options.
ReadJob read_job(const JobOptions& options, const std::vector<job::Setting>& more = {});

/// Prints which fields of a torchtitan file were ignored, and which of its defaults were used.
void print_file_notes(const JobOptions& options, const job::JobFile& file, bool quiet, std::ostream& err);

/// The model of the job. Counts its parameters, so that a count that overflows is refused here.
architecture::Architecture model_of(const job::Job& job);

/// Checks the job against the model and the card.
void check_job(const job::Job& job, const architecture::Architecture& model, const Installation& installation);

/// The job's GPU with its memory. REQUIRES: check_job does not throw.
report::Gpu card_of(const job::Job& job, const Installation& installation);

/// REQUIRES: check_job does not throw.
PlanRequest request_for(const job::Job& job, const Installation& installation, std::int64_t depth = 2);

}  // namespace plimsoll::cli
