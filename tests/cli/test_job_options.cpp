#include <doctest/doctest.h>

#include "plimsoll/cli/options.h"
#include "plimsoll/job/fields.h"

namespace test_job_options {

using namespace plimsoll::cli;
using plimsoll::job::Setting;
using plimsoll::report::ByteUnit;
using Texts = std::vector<std::string>;

namespace {

template <typename Options>
Options parsed(const Texts& arguments) {
  const Command command = parse_command_line(arguments, "");
  const auto* answer = std::get_if<Answer>(&command);
  const std::string said = answer == nullptr ? "" : answer->text;
  CAPTURE(said);
  REQUIRE(std::holds_alternative<Options>(command));
  return std::get<Options>(command);
}

void check_refused(const Texts& arguments, const std::string& message) {
  const Command command = parse_command_line(arguments, "");
  REQUIRE(std::holds_alternative<Answer>(command));
  const Answer& refused = std::get<Answer>(command);
  CHECK(refused.exit_code == 2);
  CHECK(refused.text == "plimsoll: " + message + "\nSee plimsoll " + arguments[0] + " --help.\n");
}

std::string flag(const JobOptions& job, const std::string& name) {
  for (const Setting& setting : job.flags) {
    if (setting.name == name) return setting.text;
  }
  return "(absent)";
}

}  // namespace

TEST_CASE("a plan needs nothing but a model") {
  const auto options = parsed<PlanOptions>({"plan", "llama3-8b"});
  REQUIRE(options.job.flags.size() == 1);
  CHECK(flag(options.job, "model") == "llama3-8b");
  CHECK_FALSE(options.job.file);
  CHECK(options.report.depth == 2);
  CHECK_FALSE(options.report.unit);
  CHECK_FALSE(options.report.json);
  CHECK_FALSE(options.report.quiet);
  CHECK_FALSE(options.log);
  CHECK_FALSE(options.snapshot);
}

TEST_CASE("every option of a plan is read") {
  const auto options = parsed<PlanOptions>({"plan", "--depth", "3", "--units", "gib", "--json", "-", "--log=l",
                                            "--snapshot", "s", "--quiet", "--job", "j.toml", "m", "--gpus", "64"});
  CHECK(options.report.depth == 3);
  CHECK(options.report.unit == ByteUnit::kGiB);
  CHECK(options.report.json == "-");
  CHECK(options.log == "l");
  CHECK(options.snapshot == "s");
  CHECK(options.report.quiet);
  CHECK(options.job.file == "j.toml");
  CHECK(flag(options.job, "gpus") == "64");
}

TEST_CASE("every field of a job is a flag of every command that plans, with its help") {
  for (const char* command : {"plan", "explain", "fit", "sweep"}) {
    const auto help = std::get<Answer>(parse_command_line({command, "--help"}, "")).text;
    for (const auto& field : plimsoll::job::fields()) {
      CAPTURE(field.name);
      CHECK(help.find("  " + field.flag() + " " + field.form) != std::string::npos);
      CHECK(help.find(field.help) != std::string::npos);
      const auto command_line = parse_command_line({"plan", "m", field.flag() + "=x"}, "");
      CHECK(flag(std::get<PlanOptions>(command_line).job, field.name) == "x");
    }
  }
}

TEST_CASE("a flag that is true or false takes no other word for its value") {
  const auto bare = parsed<PlanOptions>({"plan", "--keep-logits", "llama3-8b", "--accum-no-sync"});
  CHECK(flag(bare.job, "keep-logits") == "true");
  CHECK(flag(bare.job, "accum-no-sync") == "true");
  CHECK(flag(bare.job, "model") == "llama3-8b");
  CHECK(flag(parsed<PlanOptions>({"plan", "m", "--keep-logits", "FALSE"}).job, "keep-logits") == "FALSE");
  CHECK(flag(parsed<PlanOptions>({"plan", "m", "--keep-logits=maybe"}).job, "keep-logits") == "maybe");
  CHECK(flag(parsed<SweepOptions>({"sweep", "--keep-logits", "true,false", "m"}).job, "keep-logits") == "true,false");
}

TEST_CASE("a job's file may name the model") {
  CHECK(parsed<PlanOptions>({"plan", "--job", "j.toml"}).job.flags.empty());
  check_refused({"plan"},
                "no MODEL given: name one of `plimsoll models`, the path of a config.json, or a job's file with --job");
}

TEST_CASE("a sweep writes tables to standard output where no file is named") {
  CHECK(parsed<SweepOptions>({"sweep", "m", "--csv"}).csv == "-");
  CHECK(parsed<SweepOptions>({"sweep", "m", "--csv", "--quiet"}).csv == "-");
  CHECK(parsed<SweepOptions>({"sweep", "m", "--csv", "t.csv"}).csv == "t.csv");
  CHECK(parsed<SweepOptions>({"sweep", "m", "--json", "-"}).report.json == "-");
  const auto before_model = parsed<SweepOptions>({"sweep", "--json", "llama3-8b", "--jobs", "3"});
  CHECK(before_model.report.json == "-");
  CHECK(flag(before_model.job, "model") == "llama3-8b");
  CHECK(before_model.processes == 3);
  CHECK(parsed<SweepOptions>({"sweep", "m"}).processes >= 1);
  check_refused({"sweep", "m", "--csv", "--json"},
                "--csv and --json cannot both go to standard output: give one of them a file");
}

TEST_CASE("a fit looks for one thing") {
  CHECK(parsed<FitOptions>({"fit", "m", "--maximize", "batch"}).search == FitOptions::Search::kBatch);
  CHECK(parsed<FitOptions>({"fit", "m", "--maximize", "seq-len"}).search == FitOptions::Search::kSeqLen);
  const auto gpus = parsed<FitOptions>({"fit", "m", "--minimize", "gpus", "--limit", "64", "--multiple", "8"});
  CHECK(gpus.search == FitOptions::Search::kGpus);
  CHECK(gpus.limit == 64);
  CHECK(gpus.multiple == 8);
  const std::string one = "fit needs one thing to look for: --maximize batch, --maximize seq-len or --minimize gpus";
  check_refused({"fit", "m"}, one);
  check_refused({"fit", "m", "--maximize", "batch", "--minimize", "gpus"}, one);
  check_refused({"fit", "m", "--maximize", "bach"},
                "--maximize expects batch or seq-len, found 'bach': did you mean batch?");
  check_refused({"fit", "m", "--minimize", "batch"}, "--minimize expects gpus, found 'batch'");
  check_refused({"fit", "m", "--maximize", "batch", "--limit", "0"},
                "--limit expects a whole number from 1 to 2147483647, found '0': that is too small");
}

TEST_CASE("a comparison is of two documents") {
  const auto options = parsed<CompareOptions>({"compare", "a.json", "b.json", "--units", "B"});
  CHECK(options.a == "a.json");
  CHECK(options.b == "b.json");
  CHECK(options.report.unit == ByteUnit::kB);
  check_refused({"compare", "a.json"},
                "compare needs two documents, as `plimsoll plan` and `plimsoll run` write them with --json");
  check_refused({"compare", "a", "b", "c"}, "one word too many: 'c' after 'b' (expected: A.json B.json)");
}

TEST_CASE("what makes no sense is refused, with what was probably meant") {
  check_refused({"plan", "m", "--gpuss", "8"}, "unknown option '--gpuss': did you mean --gpus?");
  check_refused({"plan", "m", "--csv"}, "unknown option '--csv'");
  check_refused({"explain", "m", "--csv", "x"}, "unknown option '--csv'");
  check_refused({"plan", "m", "n"}, "one word too many: 'n' after 'm' (expected: MODEL)");
  check_refused({"plan", "m", "--gpus", "8", "--gpus=16"}, "--gpus is there twice: give it once");
  check_refused({"plan", "m", "--gpus"}, "--gpus needs a value: N");
  check_refused({"plan", "m", "--json", "--quiet"}, "--json needs a value (FILE|-) before --quiet");
  check_refused({"plan", "m", "--json", ""}, "--json needs the name of a file");
  check_refused({"plan", "m", "--depth", "0"},
                "--depth expects a whole number from 1 to 100, found '0': that is too small");
  check_refused({"sweep", "m", "--jobs", "0"},
                "--jobs expects a whole number from 1 to 1024, found '0': that is too small");
  const auto units = parse_command_line({"plan", "m", "--units", "GB"}, "");
  CHECK(std::get<Answer>(units).text.find("'GB'") != std::string::npos);
}

}  // namespace test_job_options
