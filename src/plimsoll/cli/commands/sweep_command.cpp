#include <algorithm>
#include <ostream>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/commands/commands.h"
#include "plimsoll/cli/documents.h"
#include "plimsoll/cli/grammar/common_flags.h"
#include "plimsoll/cli/job_setup.h"
#include "plimsoll/cli/search/variants.h"
#include "plimsoll/report/document.h"
#include "plimsoll/report/verdict.h"

namespace plimsoll::cli {
namespace {

using Takes = OptionShape::Takes;

struct SweepOptions {
  JobOptions job;
  ReportOptions report;
  std::optional<std::string> csv;
  std::size_t processes;
};

CommandShape sweep_shape() {
  const OptionShape csv{"--csv", "FILE|-",
                        "write the table as CSV to this file; - or no file: to standard output, and the text to "
                        "standard error",
                        Takes::kFile, "Output"};
  return job_command(
      {.name = "sweep",
       .about = "Plans every combination of several values, and lists the results in a table.",
       .details =
           "Any flag of the job takes several values: 8,16,32 or 1..8 or 1..64*2 (doubling). Values that contain\n"
           "commas (--alloc-conf) are separated by semicolons.",
       .options = {processes_flag(), units_flag(), csv, json_flag(), reserve_flag(), quiet_flag()},
       .footer =
           "Example:\n"
           "  plimsoll sweep llama3-8b --gpus 8,16,32 --batch 1..4 --checkpoint none,selective,full --csv "
           "table.csv\n\n"
           "Exit codes: 0 a combination fits, 1 no combination could be run, 2 bad usage or input, 3 none fits."});
}

/// The table: each row has a report, or the reason for which it has none.
std::vector<report::SweepRow> run_rows(const SweepJobs& jobs, const SweepOptions& options,
                                       const Installation& installation, Planning& planning, const Streams& streams) {
  std::vector<report::SweepRow> rows;
  std::vector<PlanRequest> requests;
  std::vector<std::size_t> places;
  for (const SweepJob& job : jobs.rows) {
    if (job.job) {
      places.push_back(rows.size());
      requests.push_back(request_for(*job.job, installation, /*depth=*/1));
    }
    rows.push_back({.values = job.values, .result = std::nullopt, .error = job.error});
  }
  Progress progress(streams.err, streams.progress && !options.report.quiet);
  progress.show(0, requests.size(), "");
  std::size_t done = 0;
  std::size_t fitting = 0;
  std::vector<PlanOutcome> outcomes = planning.run(requests, [&](std::size_t, const PlanOutcome& outcome) {
    fitting += outcome.report && outcome.report->fits() == true ? 1 : 0;
    progress.show(++done, requests.size(), std::to_string(fitting) + " fit");
  });
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    std::optional<report::Report>& result = rows[places[i]].result;
    result = std::move(outcomes[i].report);
    if (result) result->verdict = report::verdict_of(*result, options.report.reserve);
    rows[places[i]].error = std::move(outcomes[i].error);
  }
  return rows;
}

int sweep(const SweepOptions& options, const Context& context) {
  const auto& [installation, start, streams] = context;
  const SweepJobs jobs = sweep_jobs(options.job, installation);
  check_document(options.report.json, "--json");
  check_document(options.csv, "--csv");
  print_file_notes(options.job, jobs.file, options.report.quiet, streams.err);
  const auto count = static_cast<std::size_t>(
      std::count_if(jobs.rows.begin(), jobs.rows.end(), [](const SweepJob& row) { return row.job.has_value(); }));
  const job::Job& one =
      *std::find_if(jobs.rows.begin(), jobs.rows.end(), [](const SweepJob& row) { return row.job.has_value(); })->job;

  const auto planning = start(std::min(options.processes, count));
  report::Sweep sweep{.model = one.model,
                      .gpu = card_of(one, installation),
                      .axes = jobs.axes,
                      .rows = run_rows(jobs, options, installation, *planning, streams)};
  write_document(options.report.json, [&] { return report::to_json(sweep); }, streams);
  write_document(options.csv, [&] { return report::to_csv(sweep); }, streams);
  const bool aside = goes_to_stdout(options.report.json) || goes_to_stdout(options.csv);
  text_stream(streams, aside) << report::to_text(sweep, text_options(options.report, streams, aside)) << std::flush;
  const bool any = std::any_of(sweep.rows.begin(), sweep.rows.end(), [](const auto& row) { return row.result; });
  const bool fits = std::any_of(sweep.rows.begin(), sweep.rows.end(),
                                [](const auto& row) { return row.result && row.result->fits() == true; });
  return fits ? kExitFits : any ? kExitDoesNotFit : kExitFailed;
}

int run_sweep(const CommandWords& words, const Context& context) {
  const SweepOptions options{.job = read_job_options(words),
                             .report = read_report_options(words),
                             .csv = words.file("--csv"),
                             .processes = read_processes(words)};
  if (options.csv == "-" && options.report.json == "-") {
    throw UsageError("--csv and --json cannot both go to standard output: give one of them a file");
  }
  return sweep(options, context);
}

}  // namespace

Command sweep_command() { return {sweep_shape(), run_sweep}; }

}  // namespace plimsoll::cli
