#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plimsoll/cli/process/child_process.h"
#include "plimsoll/report/report.h"

/// The records that the processes of a script leave: each is a report, without its verdict, in a file of its own.
namespace plimsoll::cli {

struct Record {
  bool main = false;      ///< Of the process that ran the script, not of a process that the script started.
  report::Report report;  ///< Its subject is a ScriptRun.
};

/// Reads one record. `origin` names it in messages. A record that was written after a step has fewer fields than the
/// last one; missing fields keep their defaults. Throws FormatError for text that is not a record.
Record parse_record(const std::string& json, const std::string& origin);

struct Records {
  std::vector<Record> records;
  std::vector<std::string> complaints;  ///< One for each file that could not be read.
};

/// Reads all records of a folder, in the order of their names.
Records read_records(const std::filesystem::path& folder);

/// One report from all records: the memory of the process with the highest device peak, the script's error from the
/// main process, an out-of-memory error from any process. `base` has the values that the parent knows: GPU, ranks,
/// script; `exit` is the end of the main process. The report has no verdict yet.
report::Report merge(const std::vector<Record>& records, const report::Report& base, const ChildExit& exit);

}  // namespace plimsoll::cli
