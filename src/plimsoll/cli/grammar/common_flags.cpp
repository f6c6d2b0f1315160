#include "plimsoll/cli/grammar/common_flags.h"

#include <algorithm>
#include <thread>

#include "plimsoll/job/fields.h"
#include "plimsoll/job/values.h"

namespace plimsoll::cli {
namespace {

using Takes = OptionShape::Takes;

OptionShape flag_of(const job::Field& field) {
  const Takes takes = field.kind == job::Field::Kind::kFlag ? Takes::kBoolean : Takes::kValue;
  return {field.flag(), field.form, field.help, takes, "Job"};
}

/// Words of other tools. A nearest name would be a guess, and a wrong one.
std::vector<Hint> hints_of_jobs() {
  const std::string run = "run your training script with `plimsoll run` instead";
  return {
      {{"--tp", "--tensor-parallel", "--tensor-parallel-size", "--tensor-model-parallel-size"},
       "this command has no tensor parallelism, only FSDP2 and HSDP; " + run},
      {{"--pp", "--pipeline-parallel", "--pipeline-parallel-size", "--pipeline-model-parallel-size"},
       "this command has no pipeline parallelism, only FSDP2 and HSDP; " + run},
      {{"--cp", "--sp", "--context-parallel", "--context-parallel-size", "--sequence-parallel"},
       "this command has no context or sequence parallelism, only FSDP2 and HSDP; " + run},
      {{"--ep", "--expert-parallel", "--expert-parallel-size", "--expert-model-parallel-size"},
       "this command has no expert parallelism, only FSDP2 and HSDP; " + run},
      {{"--dp", "--ddp", "--data-parallel", "--data-parallel-size"},
       "all GPUs are data parallel with FSDP2: give --gpus; for HSDP give --replicas too"},
      {{"--fsdp", "--fsdp2"},
       "jobs use FSDP2 already: give --gpus, and --reshard-after-forward if blocks stay gathered"},
      {{"--hsdp"}, "give --replicas, the number of HSDP replicas"},
      {{"--zero", "--zero-stage", "--deepspeed"},
       "jobs use FSDP2: --reshard-after-forward always is like ZeRO-3, never is like ZeRO-2; for DeepSpeed " + run},
      {{"--ac", "--activation-checkpointing", "--gradient-checkpointing", "--recompute"},
       "give --checkpoint none, full or selective"},
      {{"--dtype", "--precision", "--bf16", "--fp16", "--amp", "--mixed-precision"},
       "give --param-dtype, --reduce-dtype and --master-dtype"},
      {{"--fp8", "--float8", "--int8", "--nf4", "--load-in-4bit", "--load-in-8bit", "--quantization"},
       "this command has no 8-bit or 4-bit weights; " + run},
      {{"--lora", "--qlora", "--peft", "--lora-rank"}, "this command has no LoRA; " + run},
      {{"--compile", "--torch-compile"}, "this command has no torch.compile; " + run},
      {{"--world-size", "--nproc-per-node", "--ranks"}, "give --gpus, the number of GPUs (one rank for each)"},
      {{"--batch-size", "--micro-batch-size", "--mbs", "--bs", "--local-batch-size"},
       "give --batch, the sequences of one GPU in one forward pass"},
      {{"--global-batch-size", "--gbs"}, "give --batch for one GPU; the global batch is batch × gpus × grad-accum"},
      {{"--gradient-accumulation-steps", "--ga"}, "give --grad-accum"},
      {{"--sequence-length", "--max-seq-len", "--context-length"}, "give --seq-len"},
      {{"--jobs", "-j"}, "the number of processes is now --processes (fit, sweep and explain have it)"},
  };
}

}  // namespace

OptionShape depth_flag() { return {"--depth", "N", "depth of the module table (default: 2)", Takes::kValue, "Output"}; }
OptionShape units_flag() {
  return {"--units", "B|KiB|MiB|GiB", "one unit for all amounts (default: the largest that suits each)", Takes::kValue,
          "Output"};
}
OptionShape json_flag() {
  return {"--json", "FILE|-",
          "write the JSON document to this file; - or no file: to standard output, and the text to standard error",
          Takes::kFile, "Output"};
}
OptionShape quiet_flag() { return {"--quiet", "", "print only the verdict", Takes::kNothing, "Output"}; }
OptionShape full_flag() { return {"--full", "", "print all tables, not the short report", Takes::kNothing, "Output"}; }
OptionShape reserve_flag() {
  return {"--reserve", "SIZE", "memory that must be left, as in 2GiB, for the verdict to be that it fits (default: 0)",
          Takes::kValue, "Output"};
}
OptionShape processes_flag() {
  return {"--processes", "N", "jobs to run at the same time (default: the number of cores)", Takes::kValue, "Output"};
}

OptionShape job_flag(const std::string& field) { return flag_of(job::find_field(field)); }

CommandShape job_command(CommandShape own) {
  own.words = "MODEL";
  own.most_words = 1;
  own.details =
      "MODEL is a name that `plimsoll models` lists, the path of a config.json, or a folder that contains one." +
      std::string(own.details.empty() ? "" : "\n") + own.details;
  own.options.push_back({"--job", "FILE",
                         "read the settings from a TOML file (ours or torchtitan's); flags on the command line win",
                         Takes::kValue, "Job"});
  for (const job::Field& field : job::fields()) own.options.push_back(flag_of(field));
  for (Hint& hint : hints_of_jobs()) own.hints.push_back(std::move(hint));
  return own;
}

JobOptions read_job_options(const CommandWords& words) {
  JobOptions job{.file = words.file("--job"), .flags = {}};
  if (!words.words.empty()) job.flags.push_back({"model", words.words[0]});
  for (const job::Field& field : job::fields()) {
    if (const auto text = words.option(field.flag())) job.flags.push_back({field.name, *text});
  }
  if (words.words.empty() && !job.file) {
    throw UsageError(
        "no MODEL given: give a name that `plimsoll models` lists, the path of a config.json, or a job file with "
        "--job");
  }
  return job;
}

ReportOptions read_report_options(const CommandWords& words) {
  ReportOptions report{.json = words.file("--json"), .quiet = words.has("--quiet")};
  report.full = words.has("--full") || words.option("--depth");
  report.reserve = read_reserve(words);
  report.depth = words.whole("--depth", 1, 100).value_or(report.depth);
  if (const auto units = words.option("--units")) report.unit = report::parse_byte_unit(*units);
  return report;
}

Bytes read_reserve(const CommandWords& words) {
  const auto text = words.option("--reserve");
  return text ? job::parse_memory("--reserve", *text) : 0;
}

std::size_t read_processes(const CommandWords& words) {
  constexpr std::int64_t kMost = 1024;
  const std::int64_t cores = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, kMost);
  return static_cast<std::size_t>(words.whole("--processes", 1, kMost).value_or(cores));
}

}  // namespace plimsoll::cli
