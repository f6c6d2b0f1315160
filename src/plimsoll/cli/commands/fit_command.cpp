#include <algorithm>
#include <ostream>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/commands/commands.h"
#include "plimsoll/cli/documents.h"
#include "plimsoll/cli/fit_candidates.h"
#include "plimsoll/cli/fit_search.h"
#include "plimsoll/cli/jobs.h"
#include "plimsoll/cli/progress.h"

namespace plimsoll::cli {
namespace {

/// What is looked for cannot be given as well.
void refuse_searched_flag(const FitOptions& options, const std::string& field) {
  const auto& flags = options.job.flags;
  const bool given =
      std::any_of(flags.begin(), flags.end(), [&](const job::Setting& flag) { return flag.name == field; });
  if (given) {
    throw InvalidArgument("--" + field + " is what fit looks for: leave it out, or bound the search with --limit");
  }
}

std::string note_of(const report::Fit& fit, const FitField& field, const architecture::Architecture& model) {
  const bool most = fit.direction == report::Fit::Direction::kMaximize;
  std::string note = field.note;
  // Rotary positions go on for ever, but a model is good for those it has seen.
  if (fit.what == "seq-len" && fit.limit.value_or(0) > model.positions && model.rope_theta != 0) {
    note += " The model's config says that it was made for " + std::to_string(model.positions) + " positions.";
  }
  note += std::string(note.empty() ? "" : " ") + "Every value tried was run; that a job which fits also fits with " +
          (most ? "a smaller " : "more ") + fit.what + " is assumed.";
  return note.starts_with(' ') ? note.substr(1) : note;
}

}  // namespace

int fit_command(const FitOptions& options, const Installation& installation, const StartPlanning& start,
                const Streams& streams) {
  refuse_searched_flag(options, searched_field(options.search));
  const ReadJob read = read_job(options.job);
  const architecture::Architecture model = model_of(read.job);
  const FitField field = fit_field(options, read.job, model);
  const job::Job first = job_with(read.job, field.name, field.candidates.value(0));
  check_job(first, model, installation);
  check_document(options.report.json, "--json");
  tell_about_file(options.job, read.file, options.report.quiet, streams.err);

  const auto planning = start(options.processes);
  const bool least = options.search == FitOptions::Search::kGpus;
  const FitQuestion question{
      .what = field.name,
      .direction = least ? report::Fit::Direction::kMinimize : report::Fit::Direction::kMaximize,
      .candidates = field.candidates,
      .request = [&](std::int64_t value) { return request_for(job_with(read.job, field.name, value), installation); },
      .parallel = options.processes};
  report::Fit fit;
  {
    Progress progress(streams.err, streams.progress && !options.report.quiet);
    fit = find_limit(question, *planning, [&](const report::Fit& so_far, std::int64_t from, std::int64_t to) {
      progress.show(0, 0,
                    std::to_string(so_far.probes.size()) + " tried; trying " + field.name + " " + std::to_string(from) +
                        (to > from ? " to " + std::to_string(to) : ""));
    });
  }
  fit.model = read.job.model;
  fit.gpu = card_of(first, installation);
  fit.note = note_of(fit, field, model);
  write_document(options.report.json, [&] { return report::to_json(fit); }, streams);
  const bool aside = goes_to_stdout(options.report.json);
  text_stream(streams, aside) << report::to_text(fit, text_options(options.report, streams, aside)) << std::flush;
  return fit.limit ? 0 : kExitOutOfMemory;
}

}  // namespace plimsoll::cli
