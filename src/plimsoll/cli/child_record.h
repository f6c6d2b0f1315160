#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/cli/process/child_process.h"
#include "plimsoll/report/run_report.h"

/// What passes between `plimsoll run` and the Python that runs the script: settings go in through PLIMSOLL_RUN, one
/// record of each process comes back as a file.
namespace plimsoll::cli {

struct RunSettings {
  std::filesystem::path record_folder;
  std::optional<std::int64_t> steps = {};
  std::int64_t top = 10;
  std::optional<std::filesystem::path> snapshot = {};
  bool progress = false;
  bool categories = true;  ///< whether to look whose the memory of the peak is
  std::int64_t depth = 2;  ///< modules of so many parts of a path
};

/// The value of PLIMSOLL_RUN.
std::string to_json(const RunSettings& settings);

/// What one process left behind.
struct Record {
  bool main = false;         ///< of the process that ran the script, not of one that it started
  report::RunReport values;  ///< without what the parent knows: GPU, how it ended, number of processes
};

/// Reads one record. `origin` names it in messages. Fields that are missing or null keep their defaults: a record
/// written after a step has fewer than the last one. Only the rows of `modules` and `causes` must be whole. Throws
/// FormatError where it is not a record at all.
Record parse_record(const std::string& json, const std::string& origin);

struct Records {
  std::vector<Record> records;
  std::vector<std::string> complaints;  ///< one a file that could not be read
};

/// Reads all records of a folder, in the order of their names.
Records read_records(const std::filesystem::path& folder);

/// One report of all the records: the memory of the process with the highest device peak; the script's error from the
/// main process; an out-of-memory error from whichever process met one; how it ended from the parent, who waited.
/// `base` has what the parent knows: GPU, ranks, script.
report::RunReport merge(const std::vector<Record>& records, report::RunReport base, const ChildExit& exit);

}  // namespace plimsoll::cli
