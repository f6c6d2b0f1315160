#include <algorithm>
#include <ostream>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/commands/commands.h"
#include "plimsoll/cli/documents.h"
#include "plimsoll/cli/jobs.h"
#include "plimsoll/cli/progress.h"
#include "plimsoll/cli/sweep_rows.h"
#include "plimsoll/report/sweep.h"

namespace plimsoll::cli {
namespace {

/// Runs the rows that are jobs, and gives each its report, or why it has none.
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
    fitting += outcome.report && outcome.report->fits() ? 1 : 0;
    progress.show(++done, requests.size(), std::to_string(fitting) + " fit");
  });
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    rows[places[i]].result = std::move(outcomes[i].report);
    rows[places[i]].error = std::move(outcomes[i].error);
  }
  return rows;
}

}  // namespace

int sweep_command(const SweepOptions& options, const Installation& installation, const StartPlanning& start,
                  const Streams& streams) {
  const SweepJobs jobs = sweep_jobs(options.job, installation);
  check_document(options.report.json, "--json");
  check_document(options.csv, "--csv");
  tell_about_file(options.job, jobs.file, options.report.quiet, streams.err);
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
                                [](const auto& row) { return row.result && row.result->fits(); });
  return fits ? 0 : any ? kExitOutOfMemory : kExitFailed;
}

}  // namespace plimsoll::cli
