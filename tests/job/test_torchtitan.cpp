#include <doctest/doctest.h>

#include <algorithm>

#include "job/messages.h"
#include "plimsoll/job/fields.h"
#include "plimsoll/job/toml.h"
#include "plimsoll/job/torchtitan/torchtitan.h"

namespace test_torchtitan {

using namespace plimsoll;
using namespace plimsoll::job;

namespace {

constexpr const char* kModel = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n";

struct Read {
  Job job;
  JobFile file;
};

Read read(const std::string& text, const std::vector<Setting>& flags = {}) {
  const toml::Value root = toml::parse(text, "t");
  REQUIRE(is_torchtitan(root));
  Read result;
  result.file = read_torchtitan(root, "t", result.job, flags);
  return result;
}

/// With a model in front, which takes three lines.
Job job_of(const std::string& text, const std::vector<Setting>& flags = {}) { return read(kModel + text, flags).job; }

std::string complaint(const std::string& text, const std::vector<Setting>& flags = {}) {
  return message_of<FormatError>([&] { read(kModel + text, flags); });
}

constexpr const char* kInstead = "use `plimsoll run` with the training script itself";

}  // namespace

TEST_CASE("a configuration with the names of 2025 is read") {
  const Read read_file = read(R"([job]
dump_folder = "./outputs"
description = "70B"
[profiling]
enable_profiling = true
[model]
name = "llama3"
flavor = "70B"
hf_assets_path = "./assets"
converters = []
[optimizer]
name = "AdamW"
lr = 1.5e-4
implementation = "for-loop"
[training]
local_batch_size = 2
global_batch_size = 128
seq_len = 4096
max_norm = 0.5
steps = 1000
mixed_precision_param = "float32"
mixed_precision_reduce = "bfloat16"
dtype = "bfloat16"
enable_cpu_offload = true
[training.dataloader]
num_workers = 4
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = 16
fsdp_reshard_after_forward = "always"
tensor_parallel_degree = 1
[activation_checkpoint]
mode = "full"
[compile]
enable = false
components = ["model", "loss"]
[quantize.linear.float8]
enable_fsdp_float8_all_gather = false
[debug]
seed = 1
)");
  Job expected;
  expected.model = "llama3-70b";
  expected.gpus = 32;
  expected.replicas = 2;
  expected.batch = 2;
  expected.grad_accum = 2;
  expected.seq_len = 4096;
  expected.clip_grad_norm = 0.5;
  expected.param_dtype = Dtype::kFp32;
  expected.reduce_dtype = Dtype::kBf16;
  expected.master_dtype = Dtype::kBf16;
  expected.offload = Offload::kParams;
  expected.reshard_after_forward.kind = Reshard::Kind::kAlways;
  expected.keep_last_block = false;
  expected.optimizer_impl = OptimizerImpl::kForLoop;
  expected.checkpoint.kind = CheckpointKind::kFull;
  CHECK(read_file.job == expected);
  CHECK(read_file.file.torchtitan);
  CHECK(read_file.file.assumed.empty());
  CHECK(read_file.file.passed_over == std::vector<std::string>{"compile.components", "debug.seed", "job.description",
                                                               "job.dump_folder", "model.hf_assets_path",
                                                               "optimizer.lr", "profiling.enable_profiling",
                                                               "quantize.linear.float8.enable_fsdp_float8_all_gather",
                                                               "training.dataloader.num_workers", "training.steps"});
}

TEST_CASE("a configuration with the names of 2024 is read") {
  const Job job = read(R"([model]
name = "llama2"
flavor = "7B"
norm_type = "fused_rmsnorm"
tokenizer_path = "t.model"
[optimizer]
name = "Adam"
fused = true
[training]
batch_size = 4
seq_len = 2048
warmup_steps = 200
data_parallel_degree = 64
data_parallel_type = "fsdp"
tensor_parallel_degree = 1
compile = false
fp8_linear = ""
[experimental]
pipeline_parallel_degree = 1
[activation_checkpoint]
mode = 'selective'
selective_ac_option = 'op'
[float8]
enable_float8_linear = false
)")
                      .job;
  CHECK(job.model == "llama2-7b");
  CHECK(job.norm == Norm::kFused);
  CHECK(job.optimizer == OptimizerKind::kAdam);
  CHECK(job.optimizer_impl == OptimizerImpl::kFused);
  CHECK(job.batch == 4);
  CHECK(job.gpus == 64);
  CHECK(job.checkpoint == Checkpoint{.kind = CheckpointKind::kSelective});
  CHECK(job_of("norm_type = 'rmsnorm'\n[optimizer]\nfused = false").optimizer_impl == OptimizerImpl::kForeach);
}

TEST_CASE("a missing field has torchtitan's default, and is listed") {
  const Read bare = read(kModel);
  CHECK(bare.job.batch == 8);
  CHECK(bare.job.seq_len == 2048);
  CHECK(bare.job.optimizer_impl == OptimizerImpl::kFused);
  CHECK(bare.job.checkpoint == Checkpoint{.kind = CheckpointKind::kFull, .every = 2});
  CHECK(bare.job.gpus == 8);
  auto assumed = bare.file.assumed;
  std::sort(assumed.begin(), assumed.end());
  CHECK(assumed == std::vector<std::string>{"activation_checkpoint.mode = 'selective'",
                                            "activation_checkpoint.selective_ac_option = '2'",
                                            "optimizer.implementation = 'fused'", "the number of GPUs, 8 (--gpus)",
                                            "training.local_batch_size = 8", "training.seq_len = 2048"});
}

TEST_CASE("names and flavors become presets") {
  const auto model = [](const std::string& name, const std::string& flavor) {
    return read("[model]\nname = '" + name + "'\nflavor = '" + flavor + "'").job.model;
  };
  CHECK(model("llama3", "405B") == "llama3-405b");
  CHECK(model("qwen3", "0.6B") == "qwen3-0.6b");
  CHECK(model("qwen3", "30B-A3B") == "qwen3-30b-a3b");
  CHECK(
      message_of<FormatError>([&] { model("llama3", "debugmodel"); }) ==
      "t:3: model.name 'llama3' with model.flavor 'debugmodel' would be 'llama3-debugmodel', which `plan` does not "
      "support. Give another model on the command line, by name or by its config.json; or use `plimsoll run` with the "
      "training script itself");
  CHECK(message_of<FormatError>([] { read("[training]\nseq_len = 1"); }) ==
        "t: [model] needs name and flavor, as in name = \"llama3\" and flavor = \"8B\"");
  CHECK(read("[training]\nseq_len = 1", {{"model", "gpt2"}}).job.model == "gpt2");
}

TEST_CASE("selective checkpointing selects operations, or every N-th block") {
  const auto option = [](const std::string& text) {
    return job_of("[activation_checkpoint]\nmode = 'selective'\nselective_ac_option = " + text).checkpoint;
  };
  CHECK(option("'op'") == Checkpoint{.kind = CheckpointKind::kSelective});
  CHECK(option("'3'") == Checkpoint{.kind = CheckpointKind::kFull, .every = 3});
  CHECK(option("4") == Checkpoint{.kind = CheckpointKind::kFull, .every = 4});
  CHECK(job_of("[activation_checkpoint]\nmode = 'none'\nselective_ac_option = '2'").checkpoint == Checkpoint{});
  CHECK(
      complaint("[activation_checkpoint]\nselective_ac_option = 'ops'") ==
      "t:5: activation_checkpoint.selective_ac_option ('op', or N for every N-th block) expects a whole number from 1 "
      "to 2147483647, found 'ops'");
  CHECK(complaint("[activation_checkpoint]\nselective_ac_option = true") ==
        "t:5: activation_checkpoint.selective_ac_option must be a text, found true or false");
  CHECK(complaint("[activation_checkpoint]\nmode = 'memory_budget'") ==
        "t:5: activation_checkpoint.mode must be none, full or selective, found 'memory_budget'");
}

TEST_CASE("the degrees of data parallelism become GPUs and replicas") {
  CHECK(job_of("[parallelism]\ndata_parallel_shard_degree = -1").gpus == 8);
  CHECK(job_of("[parallelism]\ndata_parallel_shard_degree = -1", {{"gpus", "64"}}).gpus == 64);
  CHECK(job_of("[parallelism]\ndata_parallel_shard_degree = 4", {{"gpus", "64"}}).gpus == 64);
  CHECK(job_of("[training]\ndata_parallel_shard_degree = 4\ndata_parallel_replicate_degree = 3").gpus == 12);
  CHECK(job_of("[parallelism]\ndata_parallel_shard_degree = 1").gpus == 1);
  CHECK(complaint("[parallelism]\ndata_parallel_shard_degree = 0") ==
        "t:5: parallelism.data_parallel_shard_degree (-1: all remaining GPUs) expects a whole number from 1 to "
        "2147483647, found '0': that is too small");
  CHECK(complaint("[parallelism]\ndata_parallel_shard_degree = 2147483647\ndata_parallel_replicate_degree = 2") ==
        "t:5: replicas × parallelism.data_parallel_shard_degree expects a whole number from 1 to 2147483647, found "
        "'4294967294': that is too large");
  CHECK(complaint("[parallelism]\ndata_parallel_shard_degree = 1\ndata_parallel_replicate_degree = 8") ==
        std::string(
            "t:5: parallelism.data_parallel_shard_degree asks for DDP, and `plan` supports only FSDP2 and HSDP: ") +
            kInstead);
  CHECK(complaint("[training]\ndata_parallel_type = 'ddp'")
            .starts_with("t:5: training.data_parallel_type asks for DDP, "));
  CHECK(
      complaint("[parallelism]\nfsdp_reshard_after_forward = 'alway'") ==
      "t:5: parallelism.fsdp_reshard_after_forward: --reshard-after-forward expects auto, always, never or a number of "
      "ranks, found 'alway': did you mean always?");
  CHECK(job_of("[parallelism]\nfsdp_reshard_after_forward = 'default'").reshard_after_forward == Reshard{});
}

TEST_CASE("the global batch and the flags determine accumulation") {
  const std::string text = "[training]\nlocal_batch_size = 2\nglobal_batch_size = 64";
  CHECK(job_of(text).grad_accum == 4);
  CHECK(job_of(text, {{"gpus", "16"}}).grad_accum == 2);
  CHECK(job_of(text, {{"batch", "8"}}).grad_accum == 1);
  CHECK(job_of(text, {{"grad-accum", "7"}}).grad_accum == 7);
  CHECK(job_of("[training]\nglobal_batch_size = -1").grad_accum == 1);
  CHECK(complaint(text, {{"batch", "3"}}) ==
        "t:6: training.global_batch_size 64 is not a multiple of batch 3 × 8 GPUs: change one of them, or give "
        "--grad-accum");
  CHECK(complaint("[training]\nglobal_batch_size = 0")
            .starts_with("t:5: training.global_batch_size (-1: one pass) expects"));
}

TEST_CASE("the message for an unsupported feature names the field") {
  for (const std::string degree : {"tensor", "pipeline", "context", "expert"}) {
    CHECK(complaint("[parallelism]\n" + degree + "_parallel_degree = 2") ==
          "t:5: parallelism." + degree +
              "_parallel_degree is 2, and `plan` supports only FSDP2 and HSDP: set it to 1, or " + kInstead);
  }
  for (const auto& [table, field] :
       std::vector<std::pair<std::string, std::string>>{{"compile", "enable"},
                                                        {"training", "compile"},
                                                        {"float8", "enable_float8_linear"},
                                                        {"optimizer", "early_step_in_backward"},
                                                        {"fault_tolerance", "enable"},
                                                        {"liger_kernel", "enable_fused_linear_cross_entropy"},
                                                        {"parallelism", "enable_compiled_autograd"}}) {
    CHECK(complaint("[" + table + "]\n" + field + " = true") ==
          "t:5: " + table + "." + field + " is true, and `plan` runs torch eagerly: set it to false, or " + kInstead);
    CHECK(complaint("[" + table + "]\n" + field + " = false") == "no complaint");
  }
  CHECK(complaint("converters = ['float8']") ==
        std::string(
            "t:4: model.converters is not empty, and `plan` does not support converted models (float8 and others): "
            "empty it, or ") +
            kInstead);
  CHECK(complaint("converters = 1").starts_with("t:4: model.converters is not empty"));
  CHECK(complaint("norm_type = 'layernorm'") ==
        "t:4: model.norm_type is 'layernorm', and `plan` supports only rmsnorm and fused_rmsnorm");
  CHECK(complaint("[optimizer]\nname = 'Muon'") ==
        "t:5: optimizer.name: --optimizer expects adamw, adam or sgd, found 'Muon'");
}

TEST_CASE("the message for an unknown table or field names the nearest") {
  CHECK(complaint("[trainning]\nseq_len = 1") == "t:4: torchtitan has no table 'trainning': did you mean training?");
  CHECK(
      complaint("[zzzzzzzzzzzz]").starts_with("t:4: torchtitan has no table 'zzzzzzzzzzzz': it has job, profiling, "));
  CHECK(complaint("[training]\nseq_length = 1") ==
        "t:5: torchtitan has no field 'seq_length' in [training]: did you mean seq_len?");
  CHECK(
      complaint("[memory_estimation]\nqqqqqqqqqqqqqqqqqq = 1") ==
      "t:5: torchtitan has no field 'qqqqqqqqqqqqqqqqqq' in [memory_estimation]: it has enabled or disable_fake_mode");
  CHECK(message_of<FormatError>([] { read(std::string("batch = 1\n") + kModel); }) ==
        "t:1: 'batch' is outside of a table: a torchtitan file has only tables, and a file of our form has none");
}

TEST_CASE("values of another type are refused") {
  CHECK(complaint("[compile]\nenable = 1") == "t:5: compile.enable must be true or false, found a whole number");
  CHECK(complaint("[parallelism]\ntensor_parallel_degree = 'x'") ==
        "t:5: parallelism.tensor_parallel_degree must be a whole number, found a text");
  CHECK(complaint("[training]\nseq_len = 1.5") ==
        "t:5: training.seq_len: 'seq_len' must be a whole number, without quotes, found 1.5");
  CHECK(complaint("[training]\nseq_len = []") ==
        "t:5: 'training.seq_len' must be a text, a number, true or false, found an array");
  CHECK(complaint("[training]\nenable_cpu_offload = 'x'") ==
        "t:5: training.enable_cpu_offload must be true or false, found a text");
}

}  // namespace test_torchtitan
