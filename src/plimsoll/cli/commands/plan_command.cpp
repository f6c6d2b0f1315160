#include <ostream>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/commands/commands.h"
#include "plimsoll/cli/documents.h"
#include "plimsoll/cli/grammar/common_flags.h"
#include "plimsoll/cli/job_setup.h"
#include "plimsoll/report/document.h"
#include "plimsoll/report/text/sections.h"
#include "plimsoll/report/verdict.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;
using Takes = OptionShape::Takes;

struct PlanOptions {
  JobOptions job;
  ReportOptions report;
  std::optional<std::string> log;
  std::optional<std::string> snapshot;
};

CommandShape plan_shape() {
  return job_command(
      {.name = "plan",
       .about = "Tells whether a training job fits on a GPU, and where every byte goes.",
       .options = {depth_flag(),
                   units_flag(),
                   json_flag(),
                   {"--log", "FILE", "write the ledger's events to this file", Takes::kValue, "Output"},
                   {"--snapshot", "FILE", "write torch's memory snapshot to this file, for pytorch.org/memory_viz",
                    Takes::kValue, "Output"},
                   full_flag(),
                   reserve_flag(),
                   quiet_flag()},
       .footer = "Examples:\n"
                 "  plimsoll plan llama3-8b --gpus 8 --checkpoint selective\n"
                 "  plimsoll plan ./config.json --gpu A100-40GB --gpus 64 --replicas 8 --json report.json\n"
                 "  plimsoll plan --job job.toml --batch 2\n\n"
                 "Exit codes: 0 it fits, 1 it could not be run, 2 bad usage or input, 3 it does not fit."});
}

/// Moves a file that the job wrote to the place that the user named.
void put_into_place(const std::optional<fs::path>& made, const std::optional<std::string>& wanted,
                    const std::string& what, const Streams& streams) {
  if (!made) return;
  std::error_code error;
  if (!fs::exists(*made, error)) {
    streams.err << "plimsoll: no " << what << " was written: the job ended before that\n";
    return;
  }
  move_into_place(*made, *wanted);
}

int plan(const PlanOptions& options, const Context& context) {
  const auto& [installation, start, streams] = context;
  const ReadJob read = read_job(options.job);
  check_job(read.job, model_of(read.job), installation);
  check_document(options.report.json, "--json");
  check_binary(options.log, "--log");
  check_binary(options.snapshot, "--snapshot");
  print_file_notes(options.job, read.file, options.report.quiet, streams.err);

  PlanRequest request = request_for(read.job, installation, options.report.depth);
  report::Report report;
  {
    // Ends before the report is printed, so that a closed pipe leaves no process and no file behind.
    const auto planning = start(1);
    std::optional<TemporaryFolder> folder;
    if (options.log || options.snapshot) folder.emplace();
    if (options.log) request.log = folder->path() / "events.log";
    if (options.snapshot) request.snapshot = folder->path() / "snapshot.pickle";
    Progress progress(streams.err, streams.progress && !options.report.quiet);
    progress.show(0, 0, "planning " + read.job.model + " on " + std::to_string(read.job.gpus) + " GPUs");
    report = report_or_throw(std::move(planning->run({request}).at(0)));
    report.verdict = report::verdict_of(report, options.report.reserve);
    put_into_place(request.log, options.log, "log", streams);
    put_into_place(request.snapshot, options.snapshot, "snapshot", streams);
  }
  write_document(options.report.json, [&] { return report::to_json(report); }, streams);
  const bool aside = goes_to_stdout(options.report.json);
  text_stream(streams, aside) << report::to_text(report, text_options(options.report, streams, aside)) << std::flush;
  return report.fits() == true ? kExitFits : kExitDoesNotFit;
}

int run_plan(const CommandWords& words, const Context& context) {
  return plan({.job = read_job_options(words),
               .report = read_report_options(words),
               .log = words.file("--log"),
               .snapshot = words.file("--snapshot")},
              context);
}

}  // namespace

Command plan_command() { return {plan_shape(), run_plan}; }

}  // namespace plimsoll::cli
