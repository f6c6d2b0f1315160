#include <ostream>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/commands/commands.h"
#include "plimsoll/cli/documents.h"
#include "plimsoll/cli/jobs.h"
#include "plimsoll/cli/output_file.h"
#include "plimsoll/cli/progress.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

/// What the run left in the temporary folder goes where it was wanted.
void put_into_place(const std::optional<fs::path>& made, const std::optional<std::string>& wanted,
                    const std::string& what, const Streams& streams) {
  if (!made) return;
  std::error_code error;
  if (!fs::exists(*made, error)) {
    streams.err << "plimsoll: there is no " << what << ": the run did not write one\n";
    return;
  }
  try {
    move_into_place(*made, *wanted);
  } catch (const InvalidArgument& failure) {
    throw PlanningFailed(failure.what());
  }
}

}  // namespace

int plan_command(const PlanOptions& options, const Installation& installation, const StartPlanning& start,
                 const Streams& streams) {
  const ReadJob read = read_job(options.job);
  check_job(read.job, model_of(read.job), installation);
  check_document(options.report.json, "--json");
  check_binary(options.log, "--log");
  check_binary(options.snapshot, "--snapshot");
  tell_about_file(options.job, read.file, options.report.quiet, streams.err);

  PlanRequest request = request_for(read.job, installation, options.report.depth);
  report::PlanReport report;
  {
    // All of it is gone before anything is printed: a reader that closes its end must leave nothing behind.
    const auto planning = start(1);
    std::optional<TemporaryFolder> folder;
    if (options.log || options.snapshot) folder.emplace();
    if (options.log) request.log = folder->path() / "events.log";
    if (options.snapshot) request.snapshot = folder->path() / "snapshot.pickle";
    Progress progress(streams.err, streams.progress && !options.report.quiet);
    progress.show(0, 0, "planning " + read.job.model + " on " + std::to_string(read.job.gpus) + " GPUs");
    report = report_or_throw(std::move(planning->run({request}).at(0)));
    put_into_place(request.log, options.log, "log", streams);
    put_into_place(request.snapshot, options.snapshot, "snapshot", streams);
  }
  write_document(options.report.json, [&] { return report::to_json(report); }, streams);
  const bool aside = goes_to_stdout(options.report.json);
  text_stream(streams, aside) << report::to_text(report, text_options(options.report, streams, aside)) << std::flush;
  return report.fits() ? 0 : kExitOutOfMemory;
}

}  // namespace plimsoll::cli
