#include <ostream>

#include "plimsoll/cli/commands/commands.h"
#include "plimsoll/cli/documents.h"
#include "plimsoll/cli/grammar/common_flags.h"
#include "plimsoll/cli/job_setup.h"
#include "plimsoll/cli/search/variants.h"
#include "plimsoll/report/document.h"
#include "plimsoll/report/text/sections.h"

namespace plimsoll::cli {
namespace {

struct ExplainOptions {
  JobOptions job;
  ReportOptions report;
  std::size_t processes;
};

CommandShape explain_shape() {
  return job_command({.name = "explain",
                      .about = "Lists the causes of the peak, and how much each single change would save.",
                      .options = {processes_flag(), units_flag(), json_flag(), full_flag(), quiet_flag()},
                      .footer =
                          "Example:\n"
                          "  plimsoll explain llama3-8b --gpus 8 --batch 2\n\n"
                          "Exit codes: 0 it fits, 1 it could not be run, 2 bad usage or input, 3 it does not fit."});
}

int explain(const ExplainOptions& options, const Context& context) {
  const auto& [installation, start, streams] = context;
  const ReadJob read = read_job(options.job);
  const architecture::Architecture model = model_of(read.job);
  check_job(read.job, model, installation);
  check_document(options.report.json, "--json");
  print_file_notes(options.job, read.file, options.report.quiet, streams.err);

  // The job and all changes run at the same time.
  const std::vector<Change> changes = single_changes(read.job, model);
  std::vector<PlanRequest> requests = {request_for(read.job, installation)};
  if (!options.report.quiet || options.report.json) {
    for (const Change& change : changes) requests.push_back(request_for(change.job, installation, /*depth=*/1));
  }
  const auto planning = start(std::min(options.processes, requests.size()));
  std::vector<PlanOutcome> outcomes;
  {
    Progress progress(streams.err, streams.progress && !options.report.quiet);
    std::size_t done = 0;
    progress.show(0, requests.size(), "");
    outcomes = planning->run(requests, [&](std::size_t index, const PlanOutcome&) {
      progress.show(++done, requests.size(), index == 0 ? "the job" : changes[index - 1].text);
    });
  }
  report::Explanation explanation{.report = report_or_throw(std::move(outcomes.at(0))), .changes = {}};
  for (std::size_t i = 1; i < outcomes.size(); ++i) {
    explanation.changes.push_back(
        {.change = changes[i - 1].text, .result = outcomes[i].report, .failure = outcomes[i].error});
  }
  write_document(options.report.json, [&] { return report::to_json(explanation); }, streams);
  const bool aside = goes_to_stdout(options.report.json);
  if (options.report.quiet) explanation.changes.clear();
  text_stream(streams, aside) << report::explanation_text(explanation.report, explanation.changes,
                                                          text_options(options.report, streams, aside))
                              << std::flush;
  return explanation.report.fits() == true ? kExitFits : kExitDoesNotFit;
}

int run_explain(const CommandWords& words, const Context& context) {
  return explain(
      {.job = read_job_options(words), .report = read_report_options(words), .processes = read_processes(words)},
      context);
}

}  // namespace

Command explain_command() { return {explain_shape(), run_explain}; }

}  // namespace plimsoll::cli
