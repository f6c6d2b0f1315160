#include <doctest/doctest.h>

#include "job/messages.h"
#include "plimsoll/job/check.h"
#include "plimsoll/job/fields.h"
#include "plimsoll/job/model.h"

namespace test_check {

using namespace plimsoll;
using namespace plimsoll::job;

namespace {

const auto kLlama = find_model("llama3-8b");
const auto kGpt2 = find_model("gpt2");

using Settings = std::vector<std::pair<std::string, std::string>>;

Job job_with(const Settings& settings) {
  Job job;
  for (const auto& [name, text] : settings) find_field(name).set(job, text);
  return job;
}

std::string complaint(const Settings& settings, const architecture::Architecture& model = kLlama) {
  return message_of<InvalidArgument>([&] { check(job_with(settings), model); });
}

}  // namespace

TEST_CASE("combinations that torch refuses are refused before the run") {
  CHECK(message_of<InvalidArgument>([] { check(Job{.gpus = 1048577}, kLlama); }) ==
        "--gpus 1048577 is too many: give at most 1048576");
  CHECK(complaint({{"optimizer", "sgd"}, {"optimizer-impl", "fused"}}) ==
        "--optimizer-impl fused with --optimizer sgd: torch has no fused SGD for sharded parameters; give foreach");
  CHECK(complaint({{"optimizer", "sgd"}, {"optimizer-impl", "fused"}, {"gpus", "1"}}) == "no complaint");
  CHECK(complaint({{"alloc-conf", "backend:cudaMallocAsync"}}) ==
        "--alloc-conf backend:cudaMallocAsync: plans need the statistics of PyTorch's own caching allocator; `plimsoll "
        "run` takes this backend");
}

TEST_CASE("a consistent job is accepted") {
  CHECK(complaint({}) == "no complaint");
  CHECK(complaint({}, kGpt2) == "no complaint");
  CHECK(complaint({{"gpus", "16"}, {"replicas", "2"}, {"rank", "15"}, {"reshard-after-forward", "4"}}) ==
        "no complaint");
  CHECK(complaint({{"accum-no-sync", "true"}, {"grad-accum", "2"}}) == "no complaint");
  CHECK(complaint({{"checkpoint", "full@0-15+selective@16-31"}, {"wrap", "blocks:32"}}) == "no complaint");
  CHECK(complaint({{"offload", "params"}, {"optimizer-impl", "fused"}, {"master-dtype", "fp16"}}) == "no complaint");
  CHECK(complaint({{"wrap", "root"}, {"keep-last-block", "true"}}) == "no complaint");
  CHECK(complaint({{"gpus", "128256"}}) == "no complaint");  // Padding of most parameters is normal.
}

TEST_CASE("inconsistent numbers of ranks are refused") {
  CHECK(complaint({{"replicas", "3"}}) ==
        "--replicas 3 does not divide --gpus 8: each replica is sharded over gpus / replicas GPUs");
  CHECK(complaint({{"rank", "8"}}) == "--rank 8 does not exist: the ranks of --gpus 8 are 0 to 7");
  CHECK(message_of<InvalidArgument>([] { check(Job{.replicas = 0}, kLlama); }) ==
        "--replicas must be at least 1, found 0");
  CHECK(
      complaint({{"gpus", "200000"}}) ==
      "gpus / replicas = 200000 GPUs are more than the 128256 rows of the largest parameter: FSDP2 shards dimension 0, "
      "so some GPUs would hold nothing. Give fewer --gpus or more --replicas");
  CHECK(complaint({{"gpus", "200000"}, {"replicas", "2"}}) == "no complaint");
}

TEST_CASE("the message for a wrong number of resharding ranks lists the divisors") {
  const std::string begin = " must divide gpus / replicas = 8, and be above 1 and below it: ";
  CHECK(complaint({{"reshard-after-forward", "3"}}) == "--reshard-after-forward 3" + begin + "give 2 or 4");
  CHECK(complaint({{"reshard-after-forward", "8"}}) == "--reshard-after-forward 8" + begin + "give 2 or 4");
  CHECK(complaint({{"reshard-after-forward", "16"}}) == "--reshard-after-forward 16" + begin + "give 2 or 4");
  CHECK(
      complaint({{"reshard-after-forward", "2"}, {"gpus", "1048573"}}) ==
      "--reshard-after-forward 2 must divide gpus / replicas = 1048573, and be above 1 and below it: give auto, always "
      "or never");
}

TEST_CASE("the default sequence length is 8192, or the positions that the model learns") {
  CHECK(sequence(Job{}, kLlama) == 8192);
  CHECK(sequence(Job{}, kGpt2) == 1024);
  CHECK(sequence(Job{.seq_len = 100}, kGpt2) == 100);
  CHECK(complaint({{"seq-len", "1025"}}, kGpt2) ==
        "--seq-len 1025 is longer than the 1024 positions that the model learns");
  CHECK(complaint({{"seq-len", "1000000"}}) == "no complaint");
}

TEST_CASE("a tensor beyond 2^62 bytes is refused with its numbers") {
  CHECK(complaint({{"batch", "2147483647"}, {"seq-len", "2147483647"}}) ==
        "--batch 2147483647 × sequence 2147483647 × vocabulary 128256 × 4 bytes is beyond 2^62 bytes: give a smaller "
        "--batch or --seq-len");
  auto wide = kLlama;
  wide.vocabulary = 1;
  wide.hidden = std::int64_t{1} << 29;
  wide.dim = wide.head_dim = 1;
  CHECK(complaint({{"batch", "1048576"}, {"seq-len", "1024"}}, wide) == "no complaint");
  CHECK(complaint({{"batch", "1048576"}, {"seq-len", "2048"}}, wide)
            .starts_with(
                "--batch 1048576 × sequence 2048 × feed-forward width 536870912 × 4 bytes is beyond 2^62 bytes"));
}

TEST_CASE("accumulation, units and checkpoints beyond the model are refused") {
  CHECK(complaint({{"accum-no-sync", "true"}}) ==
        "--accum-no-sync needs --grad-accum of 2 or more, found 1: a step with one backward pass has nothing to "
        "postpone");
  CHECK(complaint({{"wrap", "blocks:33"}}) ==
        "--wrap blocks:33 is beyond the model's 32 blocks: for one unit give root");
  CHECK(complaint({{"checkpoint", "full@30-32"}}) ==
        "--checkpoint full@30-32 names blocks that do not exist: the model has blocks 0 to 31");
  CHECK(complaint({{"checkpoint", "selective@5-9+full@0-5"}}) ==
        "--checkpoint has ranges that overlap: full@0-5 and selective@5-9. Each block can be in one range");
  CHECK(complaint({{"checkpoint", "every:33"}}) == "--checkpoint every:33 is beyond the model's 32 blocks");
}

TEST_CASE("a model is a preset, a config, or a folder with a config") {
  CHECK(find_model("llama3-405b").blocks == 126);
  CHECK(find_model("LLaMA3-8B").blocks == 32);
  const TemporaryFolder folder;
  const std::string config = R"({"model_type": "gpt2", "n_embd": 8, "n_layer": 3, "n_head": 2})";
  CHECK(find_model(folder.write("tiny/config.json", config).string()).blocks == 3);
  CHECK(find_model((folder.path / "tiny").string()).blocks == 3);
  CHECK(find_model(folder.write("odd_name", config).string()).blocks == 3);
}

TEST_CASE("the message for an unknown model names the nearest presets and what is accepted") {
  const auto message = [](const std::string& model) { return message_of<InvalidArgument>([&] { find_model(model); }); };
  const std::string rest =
      "`plimsoll models` lists the known names. The path of a config.json, or of a folder with one, is accepted too";
  CHECK(message("lama3-8b") == "unknown model 'lama3-8b'; did you mean llama3-8b? " + rest);
  CHECK(message("llama2").starts_with("unknown model 'llama2'; did you mean llama2-7b or llama2-13b or llama2-70b? "));
  CHECK(message("a great big beautiful model") == "unknown model 'a great big beautiful model'; " + rest);
  CHECK(message("nowhere/config.json") == "no such file: nowhere/config.json: expected a model's config.json");
  const TemporaryFolder folder;
  CHECK(message(folder.path.string()) ==
        folder.path.string() + " is a folder without a config.json: give a model's folder or its config");
}

}  // namespace test_check
