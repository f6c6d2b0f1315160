#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/cli/grammar/command_line.h"
#include "plimsoll/job/job_file.h"
#include "plimsoll/report/text/amounts.h"

/// Flags that several commands have, each with its reader.
namespace plimsoll::cli {

/// A job as the command line describes it; job_setup.h makes a job of it.
struct JobOptions {
  std::optional<std::string> file;  ///< --job
  std::vector<job::Setting> flags;  ///< Those given, with the model. In a sweep a value may be a list.
};

/// How a report is written.
struct ReportOptions {
  std::int64_t depth = 2;
  std::optional<report::ByteUnit> unit = {};
  std::optional<std::string> json = {};  ///< "-": standard output.
  bool quiet = false;
  bool full = false;
  Bytes reserve = 0;  ///< Memory that the verdict holds back.
};

OptionShape depth_flag();
OptionShape units_flag();
OptionShape json_flag();
OptionShape quiet_flag();
OptionShape full_flag();
OptionShape reserve_flag();
/// The bytes of --reserve; 0 if it is not given.
Bytes read_reserve(const CommandWords& words);
OptionShape processes_flag();

/// The flag of a field of a job: "gpu-memory".
OptionShape job_flag(const std::string& field);

/// A command for MODEL: its own flags, then those of a job (--job, and one for each of job::fields()).
CommandShape job_command(CommandShape own);

/// Throws InvalidArgument if neither a model nor a job file is given.
JobOptions read_job_options(const CommandWords& words);
ReportOptions read_report_options(const CommandWords& words);
/// The number of --processes; by default the machine's cores.
std::size_t read_processes(const CommandWords& words);

}  // namespace plimsoll::cli
