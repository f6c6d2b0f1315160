#include <ostream>

#include "plimsoll/cli/changes.h"
#include "plimsoll/cli/commands/commands.h"
#include "plimsoll/cli/documents.h"
#include "plimsoll/cli/jobs.h"
#include "plimsoll/cli/progress.h"
#include "plimsoll/report/text/plan_explanation.h"

namespace plimsoll::cli {

int explain_command(const ExplainOptions& options, const Installation& installation, const StartPlanning& start,
                    const Streams& streams) {
  const ReadJob read = read_job(options.job);
  const architecture::Architecture model = model_of(read.job);
  check_job(read.job, model, installation);
  tell_about_file(options.job, read.file, options.report.quiet, streams.err);

  // The job itself and each change at once: none needs to know of another.
  const std::vector<Change> changes = single_changes(read.job, model);
  std::vector<PlanRequest> requests = {request_for(read.job, installation)};
  if (!options.report.quiet) {
    for (const Change& change : changes) requests.push_back(request_for(change.job, installation, /*depth=*/1));
  }
  const auto planning = start(std::min(options.processes, requests.size()));
  std::vector<PlanOutcome> outcomes;
  {
    Progress progress(streams.err, streams.progress && !options.report.quiet);
    std::size_t done = 0;
    progress.show(0, requests.size(), "");
    outcomes = planning->run(requests, [&](std::size_t index, const PlanOutcome&) {
      progress.show(++done, requests.size(), index == 0 ? "the job itself" : changes[index - 1].text);
    });
  }
  const report::PlanReport report = report_or_throw(std::move(outcomes.at(0)));
  std::vector<report::Saving> savings;
  for (std::size_t i = 1; i < outcomes.size(); ++i) {
    savings.push_back({.change = changes[i - 1].text, .result = outcomes[i].report, .failure = outcomes[i].error});
  }
  streams.out << report::explanation_text(report, savings, text_options(options.report, streams)) << std::flush;
  return report.fits() ? 0 : kExitOutOfMemory;
}

}  // namespace plimsoll::cli
