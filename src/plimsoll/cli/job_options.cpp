#include "plimsoll/cli/job_options.h"

#include <algorithm>
#include <thread>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/command_line.h"
#include "plimsoll/cli/usage.h"
#include "plimsoll/job/fields.h"
#include "plimsoll/job/values.h"

namespace plimsoll::cli {
namespace {

using Arguments = std::vector<std::string>;
using Takes = OptionShape::Takes;

constexpr const char* kExitCodes = "Exit codes: 0 it fits, 3 it does not, 2 bad usage, 1 anything else.";

const OptionShape kJson{"--json", "FILE|-",
                        "write the document to this file; -: to standard output, and the text to standard error",
                        Takes::kValue, "Output"};
const OptionShape kDepth{"--depth", "N", "list modules of so many parts of a path (default: 2)", Takes::kValue,
                         "Output"};
const OptionShape kUnits{"--units", "B|KiB|MiB|GiB", "one unit for all amounts (default: the largest that fits each)",
                         Takes::kValue, "Output"};
const OptionShape kQuiet{"--quiet", "", "print the verdict and nothing else", Takes::kNothing, "Output"};
const OptionShape kProcesses{"--jobs", "N", "processes at once (default: the machine's cores)", Takes::kValue,
                             "Options"};

CommandShape job_command(const std::string& name, const std::string& about, std::vector<OptionShape> own,
                         const std::string& footer) {
  CommandShape shape{.name = name, .about = about, .words = "MODEL", .most_words = 1, .options = {}, .footer = footer};
  shape.options.push_back({"--job", "FILE",
                           "read the job from a TOML file with the names of these flags, or of torchtitan's form; "
                           "flags go over it",
                           Takes::kValue, "Job"});
  for (const job::Field& field : job::fields()) {
    const Takes takes = field.kind == job::Field::Kind::kFlag ? Takes::kBoolean : Takes::kValue;
    shape.options.push_back({field.flag(), field.form, field.help, takes, "Job"});
  }
  shape.options.insert(shape.options.end(), own.begin(), own.end());
  shape.about += "\nMODEL is a name of `plimsoll models`, or the path of a config.json (or of a folder with one).";
  return shape;
}

JobOptions job_of(const CommandWords& words) {
  JobOptions job{.file = words.option("--job"), .flags = {}};
  if (!words.words.empty()) job.flags.push_back({"model", words.words[0]});
  for (const job::Field& field : job::fields()) {
    if (const auto text = words.option(field.flag())) job.flags.push_back({field.name, *text});
  }
  if (words.words.empty() && !job.file) {
    throw InvalidArgument(
        "no MODEL given: name one of `plimsoll models`, the path of a config.json, or a job's file "
        "with --job");
  }
  return job;
}

std::optional<std::string> file_of(const CommandWords& words, const std::string& name) {
  auto file = words.option(name);
  if (file && file->empty()) throw InvalidArgument(name + " needs the name of a file");
  return file;
}

ReportOptions report_of(const CommandWords& words) {
  ReportOptions report{.json = file_of(words, "--json"), .quiet = words.option("--quiet").has_value()};
  if (const auto depth = words.option("--depth")) report.depth = job::parse_whole("--depth", *depth, 1, 100);
  if (const auto units = words.option("--units")) report.unit = report::parse_byte_unit(*units);
  return report;
}

std::size_t processes_of(const CommandWords& words) {
  constexpr std::int64_t kMost = 1024;
  const auto given = words.option("--jobs");
  if (given) return static_cast<std::size_t>(job::parse_whole("--jobs", *given, 1, kMost));
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMost);
}

/// Reads the words with `shape`, and makes options of them.
template <typename Make>
Command parse(const CommandShape& shape, const Arguments& arguments, const Make& make) {
  const auto parsed = parse_words(shape, arguments);
  if (const auto* answer = std::get_if<Answer>(&parsed)) return *answer;
  try {
    return make(std::get<CommandWords>(parsed));
  } catch (const InvalidArgument& error) {
    return bad_usage(error.what(), shape.name);
  }
}

FitOptions::Search search_of(const CommandWords& words) {
  const auto most = words.option("--maximize");
  const auto least = words.option("--minimize");
  if (most.has_value() == least.has_value()) {
    throw InvalidArgument("fit needs one thing to look for: --maximize batch, --maximize seq-len or --minimize gpus");
  }
  static const std::vector<std::string> kMost = {"batch", "seq-len"};
  static const std::vector<std::string> kLeast = {"gpus"};
  if (least) {
    job::parse_word("--minimize", *least, kLeast);
    return FitOptions::Search::kGpus;
  }
  return static_cast<FitOptions::Search>(job::parse_word("--maximize", *most, kMost));
}

}  // namespace

Command parse_plan(const Arguments& arguments) {
  const CommandShape shape = job_command(
      "plan", kPlanAbout,
      {kDepth,
       kUnits,
       kJson,
       {"--log", "FILE", "write the ledger's events to this file", Takes::kValue, "Output"},
       {"--snapshot", "FILE", "write torch's memory snapshot to this file (for memory_viz)", Takes::kValue, "Output"},
       kQuiet},
      "Examples:\n"
      "  plimsoll plan llama3-8b --gpus 8 --checkpoint selective\n"
      "  plimsoll plan ./config.json --gpu A100-40GB --gpus 64 --replicas 8 --json report.json\n"
      "  plimsoll plan --job job.toml --batch 2\n\n" +
          std::string(kExitCodes));
  return parse(shape, arguments, [](const CommandWords& words) {
    return PlanOptions{.job = job_of(words),
                       .report = report_of(words),
                       .log = file_of(words, "--log"),
                       .snapshot = file_of(words, "--snapshot")};
  });
}

Command parse_explain(const Arguments& arguments) {
  const CommandShape shape = job_command("explain", kExplainAbout, {kProcesses, kUnits, kQuiet},
                                         "Example:\n"
                                         "  plimsoll explain llama3-8b --gpus 8 --batch 2\n\n" +
                                             std::string(kExitCodes));
  return parse(shape, arguments, [](const CommandWords& words) {
    return ExplainOptions{.job = job_of(words), .report = report_of(words), .processes = processes_of(words)};
  });
}

Command parse_sweep(const Arguments& arguments) {
  OptionShape json = kJson;
  json.takes = Takes::kFile;
  OptionShape csv = json;
  csv.name = "--csv";
  csv.help = "write the table as CSV to this file; - or nothing: to standard output, and the text to standard error";
  json.help = "the same as JSON";
  const CommandShape shape = job_command(
      "sweep", kSweepAbout, {kProcesses, kUnits, csv, json, kQuiet},
      "Any flag of the job takes several values: 8,16,32 or 1..8 or 1..64*2 (each twice the one before). Values with\n"
      "commas of their own (--alloc-conf) have semicolons between them.\n\n"
      "Example:\n"
      "  plimsoll sweep llama3-8b --gpus 8,16,32 --batch 1..4 --checkpoint none,selective,full --csv table.csv\n\n"
      "Exit codes: 0 one at least fits, 3 none does, 2 bad usage, 1 anything else.");
  return parse(shape, arguments, [](const CommandWords& words) {
    SweepOptions options{.job = job_of(words),
                         .report = report_of(words),
                         .csv = file_of(words, "--csv"),
                         .processes = processes_of(words)};
    if (options.csv == "-" && options.report.json == "-") {
      throw InvalidArgument("--csv and --json cannot both go to standard output: give one of them a file");
    }
    return options;
  });
}

Command parse_fit(const Arguments& arguments) {
  const CommandShape shape =
      job_command("fit", kFitAbout,
                  {{"--maximize", "batch|seq-len", "look for the largest that fits", Takes::kValue, "Search"},
                   {"--minimize", "gpus", "look for the fewest that fit", Takes::kValue, "Search"},
                   {"--limit", "N", "try nothing larger (default: 65536 sequences, 16777216 tokens, 16384 GPUs)",
                    Takes::kValue, "Search"},
                   {"--multiple", "N", "try multiples of it only (default: of 128 for seq-len, else of 1)",
                    Takes::kValue, "Search"},
                   kProcesses,
                   kUnits,
                   kJson,
                   kQuiet},
                  "Examples:\n"
                  "  plimsoll fit llama3-8b --gpus 8 --checkpoint selective --maximize batch\n"
                  "  plimsoll fit llama3-70b --checkpoint full --minimize gpus\n\n"
                  "Exit codes: 0 a limit was found, 3 nothing fits, 2 bad usage, 1 anything else.");
  return parse(shape, arguments, [](const CommandWords& words) {
    FitOptions options{
        .job = job_of(words), .report = report_of(words), .search = search_of(words), .processes = processes_of(words)};
    if (const auto limit = words.option("--limit")) options.limit = job::parse_whole("--limit", *limit, 1);
    if (const auto multiple = words.option("--multiple")) {
      options.multiple = job::parse_whole("--multiple", *multiple, 1);
    }
    return options;
  });
}

Command parse_compare(const Arguments& arguments) {
  const CommandShape shape{.name = "compare",
                           .about = kCompareAbout,
                           .words = "A.json B.json",
                           .most_words = 2,
                           .options = {kDepth, kUnits, kJson, kQuiet},
                           .footer =
                               "Example:\n"
                               "  plimsoll plan llama3-8b --json a.json\n"
                               "  plimsoll plan llama3-8b --checkpoint full --json b.json\n"
                               "  plimsoll compare a.json b.json"};
  return parse(shape, arguments, [](const CommandWords& words) {
    if (words.words.size() < 2) {
      throw InvalidArgument(
          "compare needs two documents, as `plimsoll plan` and `plimsoll run` write them with --json");
    }
    return CompareOptions{.a = words.words[0], .b = words.words[1], .report = report_of(words)};
  });
}

}  // namespace plimsoll::cli
