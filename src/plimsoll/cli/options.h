#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/job/job_file.h"
#include "plimsoll/report/text/amounts.h"

namespace plimsoll::cli {

/// `plimsoll run`, as the user wrote it. Numbers are not checked yet: see checks.h.
struct RunOptions {
  std::string gpu = "H100-80GB";
  std::optional<Bytes> gpu_memory;            ///< instead of the profile's
  std::optional<std::int64_t> gpus_per_node;  ///< see Placement and card_count
  std::int64_t world_size = 1;
  std::int64_t rank = 0;
  std::optional<std::string> python;  ///< a path, or a name on PATH
  std::optional<std::string> alloc_conf;
  std::int64_t event_lag = 0;
  std::optional<std::int64_t> steps;
  std::optional<std::string> json;  ///< "-": standard output
  std::optional<std::string> snapshot;
  std::int64_t top = 10;
  bool explain = false;    ///< the causes of the peak too
  std::int64_t depth = 2;  ///< modules of so many parts of a path
  bool categories = true;  ///< whose the memory of the peak is
  bool quiet = false;

  bool is_module = false;              ///< `-m module`, as Python's
  std::string script;                  ///< the file, or the module's name
  std::vector<std::string> arguments;  ///< the script's own, untouched
};

/// A job, as the flags describe it. What they mean is found out by jobs.h.
struct JobOptions {
  std::optional<std::string> file;  ///< --job
  std::vector<job::Setting> flags;  ///< Those that were given, the model among them. In a sweep they may be lists.
};

/// How a report is written.
struct ReportOptions {
  std::int64_t depth = 2;
  std::optional<report::ByteUnit> unit = {};
  std::optional<std::string> json = {};  ///< "-": standard output
  bool quiet = false;
};

/// `plimsoll plan MODEL`.
struct PlanOptions {
  JobOptions job = {};
  ReportOptions report = {};
  std::optional<std::string> log = {};
  std::optional<std::string> snapshot = {};
};

/// `plimsoll explain MODEL`. It has no document.
struct ExplainOptions {
  JobOptions job = {};
  ReportOptions report = {};
  std::size_t processes = 1;  ///< At once.
};

/// `plimsoll sweep MODEL`.
struct SweepOptions {
  JobOptions job = {};
  ReportOptions report = {};
  std::optional<std::string> csv = {};  ///< "-": standard output
  std::size_t processes = 1;
};

/// `plimsoll fit MODEL`.
struct FitOptions {
  enum class Search : std::uint8_t { kBatch, kSeqLen, kGpus };

  JobOptions job = {};
  ReportOptions report = {};
  Search search = Search::kBatch;
  std::optional<std::int64_t> limit = {};     ///< The largest value to try.
  std::optional<std::int64_t> multiple = {};  ///< Only multiples of it are tried.
  std::size_t processes = 1;
};

/// `plimsoll compare A.json B.json`.
struct CompareOptions {
  std::string a;
  std::string b;
  ReportOptions report = {};
};

/// `plimsoll models [NAME]`.
struct ModelsOptions {
  std::optional<std::string> name = {};
};

/// `plimsoll gpus`.
struct GpusOptions {};

/// The command line is answered already: help, the version, or what is wrong with it.
struct Answer {
  int exit_code = 0;
  std::string text;  ///< for standard output where exit_code is 0, else for standard error
};

using Command = std::variant<PlanOptions, SweepOptions, FitOptions, ExplainOptions, CompareOptions, RunOptions,
                             ModelsOptions, GpusOptions, Answer>;

/// Reads a command line, without the program's name. Never throws for what the user wrote: that becomes an Answer.
Command parse_command_line(const std::vector<std::string>& arguments, const std::string& version);

}  // namespace plimsoll::cli
