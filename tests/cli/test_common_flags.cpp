#include <doctest/doctest.h>

#include "plimsoll/cli/commands/commands.h"
#include "plimsoll/cli/grammar/common_flags.h"
#include "plimsoll/job/fields.h"

namespace test_common_flags {

using namespace plimsoll::cli;
using plimsoll::InvalidArgument;
using Texts = std::vector<std::string>;

namespace {

CommandWords words_of(const Texts& arguments) {
  static const CommandShape shape =
      job_command({.name = "ask",
                   .about = "",
                   .options = {processes_flag(), depth_flag(), units_flag(), json_flag(), quiet_flag()}});
  return parse_words(shape, arguments);
}

std::string flag(const JobOptions& job, const std::string& name) {
  for (const auto& setting : job.flags) {
    if (setting.name == name) return setting.text;
  }
  return "(absent)";
}

}  // namespace

TEST_CASE("a job needs a model or a job file") {
  const JobOptions job = read_job_options(words_of({"llama3-8b"}));
  REQUIRE(job.flags.size() == 1);
  CHECK(flag(job, "model") == "llama3-8b");
  CHECK_FALSE(job.file);
  CHECK(read_job_options(words_of({"--job", "j.toml"})).flags.empty());
  CHECK(read_job_options(words_of({"--job", "j.toml"})).file == "j.toml");
  CHECK_THROWS_WITH_AS(read_job_options(words_of({})),
                       "no MODEL given: give a name that `plimsoll models` lists, the path of a config.json, or a job "
                       "file with --job",
                       UsageError);
}

TEST_CASE("every field of a job is a flag, with its help, of every command that plans") {
  for (const Command& command : commands()) {
    const std::string& name = command.shape.name;
    if (name != "plan" && name != "explain" && name != "fit" && name != "sweep") continue;
    CAPTURE(name);
    std::string help;  // Without the line breaks of long lines.
    for (const char c : help_text(command.shape)) {
      if (c == '\n') help += ' ';
      if (c != '\n' && !(c == ' ' && help.ends_with(' '))) help += c;
    }
    for (const auto& field : plimsoll::job::fields()) {
      CAPTURE(field.name);
      CHECK(help.find(" " + field.flag() + " " + field.form + " " + field.help) != std::string::npos);
      const CommandWords words = parse_words(command.shape, {"m", field.flag() + "=x"});
      CHECK(flag(read_job_options(words), field.name) == "x");
    }
  }
}

TEST_CASE("a command's own flags stand before those of the job") {
  for (const Command& command : commands()) {
    const std::string help = help_text(command.shape);
    const std::size_t job = help.find("\nJob:\n");
    if (job == std::string::npos) continue;
    CAPTURE(command.shape.name);
    CHECK(help.find("  --units ") < job);
    CHECK(help.find("  --quiet ") < job);
    CHECK(help.find("  --batch ") > job);
  }
}

TEST_CASE("the flags of a report have defaults and are read") {
  const ReportOptions plain = read_report_options(words_of({"m"}));
  CHECK(plain.depth == 2);
  CHECK_FALSE(plain.unit);
  CHECK_FALSE(plain.json);
  CHECK_FALSE(plain.quiet);
  const ReportOptions all =
      read_report_options(words_of({"m", "--depth", "3", "--units", "gib", "--json", "r.json", "--quiet"}));
  CHECK(all.depth == 3);
  CHECK(all.unit == plimsoll::report::ByteUnit::kGiB);
  CHECK(all.json == "r.json");
  CHECK(all.quiet);
  CHECK(read_report_options(words_of({"m", "--json"})).json == "-");
  CHECK_THROWS_WITH_AS(read_report_options(words_of({"m", "--json="})), "--json needs the name of a file",
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(read_report_options(words_of({"m", "--depth", "0"})),
                       "--depth expects a whole number from 1 to 100, found '0': that is too small", InvalidArgument);
  CHECK_THROWS_WITH_AS(read_report_options(words_of({"m", "--units", "GB"})), doctest::Contains("'GB'"),
                       InvalidArgument);
}

TEST_CASE("the number of processes is the machine's unless it is given") {
  CHECK(read_processes(words_of({"m"})) >= 1);
  CHECK(read_processes(words_of({"m", "--processes", "3"})) == 3);
  CHECK_THROWS_WITH_AS(read_processes(words_of({"m", "--processes", "0"})),
                       "--processes expects a whole number from 1 to 1024, found '0': that is too small",
                       InvalidArgument);
}

TEST_CASE("words of other tools have fixed answers") {
  const auto answer = [](const std::string& option) -> std::string {
    try {
      words_of({"m", option, "8"});
    } catch (const UsageError& error) {
      return error.what();
    }
    return "(not refused)";
  };
  const std::string run = "run your training script with `plimsoll run` instead";
  CHECK(answer("--tp") == "--tp: this command has no tensor parallelism, only FSDP2 and HSDP; " + run);
  CHECK(answer("--pp") == "--pp: this command has no pipeline parallelism, only FSDP2 and HSDP; " + run);
  CHECK(answer("--cp") == "--cp: this command has no context or sequence parallelism, only FSDP2 and HSDP; " + run);
  CHECK(answer("--ep") == "--ep: this command has no expert parallelism, only FSDP2 and HSDP; " + run);
  CHECK(answer("--dp") == "--dp: all GPUs are data parallel with FSDP2: give --gpus; for HSDP give --replicas too");
  CHECK(answer("--fsdp") ==
        "--fsdp: jobs use FSDP2 already: give --gpus, and --reshard-after-forward if blocks stay gathered");
  CHECK(answer("--zero") ==
        "--zero: jobs use FSDP2: --reshard-after-forward always is like ZeRO-3, never is like ZeRO-2; for DeepSpeed " +
            run);
  CHECK(answer("--ac") == "--ac: give --checkpoint none, full or selective");
  CHECK(answer("--dtype") == "--dtype: give --param-dtype, --reduce-dtype and --master-dtype");
  CHECK(answer("--fp8") == "--fp8: this command has no 8-bit or 4-bit weights; " + run);
  CHECK(answer("--lora") == "--lora: this command has no LoRA; " + run);
  CHECK(answer("--compile") == "--compile: this command has no torch.compile; " + run);
  CHECK(answer("--batch-size") == "--batch-size: give --batch, the sequences of one GPU in one forward pass");
  CHECK(answer("--jobs") == "--jobs: the number of processes is now --processes (fit, sweep and explain have it)");
}

}  // namespace test_common_flags
