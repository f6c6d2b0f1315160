#include <algorithm>
#include <ostream>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/commands/commands.h"
#include "plimsoll/cli/documents.h"
#include "plimsoll/cli/grammar/common_flags.h"
#include "plimsoll/cli/job_setup.h"
#include "plimsoll/cli/search/fit_search.h"
#include "plimsoll/job/values.h"
#include "plimsoll/report/document.h"

namespace plimsoll::cli {
namespace {

using Takes = OptionShape::Takes;

struct FitOptions {
  JobOptions job;
  ReportOptions report;
  FitRange range;
  std::size_t processes;
};

CommandShape fit_shape() {
  return job_command(
      {.name = "fit",
       .about = "Finds the largest batch, the longest sequence or the fewest GPUs that fit.",
       .options =
           {{"--maximize", "batch|seq-len", "find the largest value that fits", Takes::kValue, "Search"},
            {"--minimize", "gpus", "find the fewest GPUs that fit", Takes::kValue, "Search"},
            {"--limit", "N", "the largest value to try (default: 65536 sequences, 16777216 tokens, 16384 GPUs)",
             Takes::kValue, "Search"},
            {"--multiple", "N",
             "try only multiples of N (default: 128 for seq-len, 1 for batch; GPUs: 1 to 8, then multiples of 8)",
             Takes::kValue, "Search"},
            processes_flag(),
            units_flag(),
            json_flag(),
            reserve_flag(),
            quiet_flag()},
       .footer = "Examples:\n"
                 "  plimsoll fit llama3-8b --gpus 8 --checkpoint selective --maximize batch\n"
                 "  plimsoll fit llama3-70b --checkpoint full --minimize gpus\n\n"
                 "Exit codes: 0 a value fits, 1 a job could not be run, 2 bad usage or input, 3 no value fits."});
}

Search read_search(const CommandWords& words) {
  const auto most = words.option("--maximize");
  const auto least = words.option("--minimize");
  if (most.has_value() == least.has_value()) {
    throw UsageError("give exactly one of --maximize batch, --maximize seq-len and --minimize gpus");
  }
  static const std::vector<std::string> kMost = {"batch", "seq-len"};
  static const std::vector<std::string> kLeast = {"gpus"};
  if (most) return static_cast<Search>(job::parse_word("--maximize", *most, kMost));
  job::parse_word("--minimize", *least, kLeast);
  return Search::kGpus;
}

void refuse_searched_flag(const FitOptions& options, const std::string& field) {
  const auto& flags = options.job.flags;
  const bool given =
      std::any_of(flags.begin(), flags.end(), [&](const job::Setting& flag) { return flag.name == field; });
  if (given) {
    throw InvalidArgument("--" + field + " cannot be given: fit searches for it. To bound the search give --limit");
  }
}

std::string note_of(const report::Fit& fit, const FitField& field, const architecture::Architecture& model) {
  const bool most = fit.direction == report::Fit::Direction::kMaximize;
  std::string note = field.note;
  // Rotary positions have no end, but a model was trained on some of them only.
  if (fit.what == "seq-len" && fit.limit.value_or(0) > model.positions && model.rope_theta != 0) {
    note += " The model's config states " + std::to_string(model.positions) + " positions.";
  }
  const std::string others = most ? "smaller values of " + fit.what : "more GPUs";
  note += std::string(note.empty() ? "" : " ") + "Only the values listed were run. Jobs with " + others +
          " are assumed to fit.";
  return note.starts_with(' ') ? note.substr(1) : note;
}

int fit(const FitOptions& options, const Context& context) {
  const auto& [installation, start, streams] = context;
  refuse_searched_flag(options, searched_field(options.range.search));
  const ReadJob read = read_job(options.job);
  const architecture::Architecture model = model_of(read.job);
  const FitField field = fit_field(options.range, read.job, model);
  const job::Job first = job_with(read.job, field.name, field.candidates.value(0));
  check_job(first, model, installation);
  check_document(options.report.json, "--json");
  print_file_notes(options.job, read.file, options.report.quiet, streams.err);

  const auto planning = start(options.processes);
  const bool least = options.range.search == Search::kGpus;
  const FitQuestion question{
      .what = field.name,
      .direction = least ? report::Fit::Direction::kMinimize : report::Fit::Direction::kMaximize,
      .candidates = field.candidates,
      .request = [&](std::int64_t value) { return request_for(job_with(read.job, field.name, value), installation); },
      .reserve = options.report.reserve,
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
  fit.step = field.step;
  // Learned positions have an end, rotary ones have none.
  fit.is_models_limit =
      field.name == "seq-len" && !fit.beyond && model.rope_theta == 0 && fit.limit == std::int64_t{model.positions};
  fit.note = note_of(fit, field, model);
  write_document(options.report.json, [&] { return report::to_json(fit); }, streams);
  const bool aside = goes_to_stdout(options.report.json);
  text_stream(streams, aside) << report::to_text(fit, text_options(options.report, streams, aside)) << std::flush;
  return fit.limit ? kExitFits : kExitDoesNotFit;
}

int run_fit(const CommandWords& words, const Context& context) {
  const FitRange range{
      .search = read_search(words), .limit = words.whole("--limit", 1), .multiple = words.whole("--multiple", 1)};
  return fit({.job = read_job_options(words),
              .report = read_report_options(words),
              .range = range,
              .processes = read_processes(words)},
             context);
}

}  // namespace

Command fit_command() { return {fit_shape(), run_fit}; }

}  // namespace plimsoll::cli
