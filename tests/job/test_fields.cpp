#include <doctest/doctest.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "job/messages.h"
#include "plimsoll/job/fields.h"
#include "plimsoll/job/values.h"

namespace test_fields {

using namespace plimsoll;
using namespace plimsoll::job;

namespace {

/// For each field, values other than the default, as they are written back.
const std::vector<std::pair<std::string, std::vector<std::string>>> kOthers = {
    {"gpu", {"A100-40GB", "./mine.json"}},
    {"gpu-memory", {"80GiB", "85899345921", "1", "256TiB", "3MiB"}},
    {"gpus", {"1", "1048576"}},
    {"replicas", {"2"}},
    {"rank", {"0", "7"}},
    {"batch", {"3"}},
    {"seq-len", {"1", "131072"}},
    {"steps", {"5"}},
    {"grad-accum", {"4"}},
    {"accum-no-sync", {"true", "false"}},
    {"param-dtype", {"fp32", "fp16", "bf16"}},
    {"reduce-dtype", {"fp32", "fp16", "bf16"}},
    {"master-dtype", {"fp32", "fp16", "bf16"}},
    {"reshard-after-forward", {"auto", "always", "never", "4"}},
    {"keep-last-block", {"true", "false"}},
    {"wrap", {"blocks", "blocks:4", "root"}},
    {"checkpoint",
     {"none", "full", "selective", "every:2", "selective:every:3", "full@0-15+selective@16-23", "none@3-3"}},
    {"optimizer", {"adamw", "adam", "sgd"}},
    {"optimizer-impl", {"foreach", "fused", "forloop"}},
    {"offload", {"params", "none"}},
    {"clip-grad-norm", {"0.1", "1", "none", "1e-300"}},
    {"loss-fp32", {"true", "false"}},
    {"keep-logits", {"true", "false"}},
    {"norm", {"composite", "fused"}},
    {"alloc-conf", {"expandable_segments:True,max_split_size_mb:64"}},
};

std::string complaint(const std::string& field, const std::string& text) {
  Job job;
  const std::string message = message_of<InvalidArgument>([&] { find_field(field).set(job, text); });
  CHECK(job == Job{});  // What is refused changes nothing.
  return message;
}

Job with(const std::string& field, const std::string& text) {
  Job job;
  find_field(field).set(job, text);
  return job;
}

}  // namespace

TEST_CASE("text and typed values of every field read back as the same value") {
  std::set<std::string> covered;
  for (const auto& [name, texts] : kOthers) {
    const Field& field = find_field(name);
    covered.insert(name);
    for (const std::string& text : texts) {
      CAPTURE(name);
      CAPTURE(text);
      Job job;
      field.set(job, text);
      CHECK(field.get(job) == text);
      Job typed;
      set_value(typed, field, field.value(job));
      CHECK(typed == job);
    }
  }
  for (const Field& field : fields()) CHECK_MESSAGE(covered.contains(field.name), field.name);
}

TEST_CASE("the table has every field of a job once, with its default in the help") {
  std::set<std::string> names;
  for (const Field& field : fields()) {
    CAPTURE(field.name);
    CHECK(names.insert(field.name).second);
    CHECK(field.help.find('\n') == std::string::npos);
    const auto text = field.get(Job{});
    CHECK(text.has_value() == !(field.name == "gpu-memory" || field.name == "seq-len" || field.name == "alloc-conf"));
    CHECK(field.help.find("(default: " + text.value_or("")) != std::string::npos);
    CHECK(field.optional == static_cast<bool>(field.clear));
    CHECK(field.flag() == "--" + field.name);
  }
  CHECK(find_field("grad_accum").key() == "grad_accum");
}

TEST_CASE("other spellings mean the same") {
  CHECK(with("reshard-after-forward", "true").reshard_after_forward.kind == Reshard::Kind::kAlways);
  CHECK(with("reshard-after-forward", "false").reshard_after_forward.kind == Reshard::Kind::kNever);
  CHECK(with("param-dtype", "float16").param_dtype == Dtype::kFp16);
  CHECK(with("reduce-dtype", "BFloat16").reduce_dtype == Dtype::kBf16);
  CHECK(with("master-dtype", "float32").master_dtype == Dtype::kFp32);
  CHECK(with("optimizer-impl", "for-loop").optimizer_impl == OptimizerImpl::kForLoop);
  CHECK(with("optimizer", "SGD").optimizer == OptimizerKind::kSgd);
  CHECK(with("checkpoint", "every:1").checkpoint == Checkpoint{.kind = CheckpointKind::kFull});
  CHECK(with("checkpoint", "full:every:2").checkpoint == Checkpoint{.kind = CheckpointKind::kFull, .every = 2});
  CHECK(with("checkpoint", "full@5").checkpoint.ranges ==
        std::vector<Checkpoint::Range>{{.first = 5, .last = 5, .kind = CheckpointKind::kFull}});
  CHECK(with("wrap", "blocks:1").wrap == Wrap{});
  CHECK(with("gpu-memory", "24 GB").gpu_memory == 24'000'000'000);
  for (const char* yes : {"", "true", "yes", "on", "1", "TRUE"}) CHECK(with("keep-logits", yes).keep_logits);
  for (const char* no : {"false", "no", "off", "0"}) CHECK_FALSE(with("loss-fp32", no).loss_fp32);
}

TEST_CASE("the message for a wrong number says the range and the fix") {
  const std::string expected = "--batch expects a whole number from 1 to 2147483647, found ";
  CHECK(complaint("batch", "0") == expected + "'0': that is too small");
  CHECK(complaint("batch", "000") == expected + "'000': that is too small");
  CHECK(complaint("batch", "-1") == expected + "'-1': that is too small");
  CHECK(complaint("batch", "2147483648") == expected + "'2147483648': that is too large");
  CHECK(complaint("batch", "99999999999999999999") == expected + "'99999999999999999999': that is too large");
  CHECK(complaint("batch", "1e3") == expected + "'1e3': write all digits, as in 1000");
  CHECK(complaint("batch", "1.5") == expected + "'1.5': it must be whole");
  for (const char* text : {"", "four", "+4", " 4", "4 ", "0x10", "1_000", "-", "1e", "nan", "1e999"}) {
    CHECK(complaint("batch", text) == expected + "'" + text + "'");
  }
  CHECK(complaint("batch", std::string(100, 'x')) == expected + "'" + std::string(60, 'x') + "…'");
  CHECK(complaint("batch", "\x1b[31m\n") == expected + "'?[31m?'");
  CHECK(complaint("rank", "-1") == "--rank expects a whole number from 0 to 2147483647, found '-1': that is too small");
}

TEST_CASE("the message for a wrong word lists the known words and the nearest") {
  CHECK(complaint("gpu", "") == "--gpu expects a name or the path of a file, found nothing");
  CHECK(complaint("gpu-memory", "80 gigs") ==
        "--gpu-memory expects an amount of memory, found '80 gigs': write a number and a unit, as in 80GiB, 24GB or "
        "1073741824");
  CHECK(complaint("gpu-memory", "0GiB") ==
        "--gpu-memory expects an amount of memory above 0 and at most 256TiB, found '0GiB'");
  CHECK(complaint("gpu-memory", "257TiB") ==
        "--gpu-memory expects an amount of memory above 0 and at most 256TiB, found '257TiB'");
  CHECK(complaint("gpu-memory", "9999999TiB") ==
        "--gpu-memory expects an amount of memory above 0 and at most 256TiB, found '9999999TiB'");
  CHECK(complaint("gpu-memory", "99999999999999999999999") ==
        "--gpu-memory expects an amount of memory above 0 and at most 256TiB, found '99999999999999999999999'");
  CHECK(complaint("keep-logits", "ture") == "--keep-logits expects true or false, found 'ture': did you mean true?");
  CHECK(complaint("keep-logits", "perhaps") == "--keep-logits expects true or false, found 'perhaps'");
  CHECK(complaint("param-dtype", "bf1") == "--param-dtype expects bf16, fp16 or fp32, found 'bf1': did you mean bf16?");
  CHECK(complaint("param-dtype", "int8") == "--param-dtype expects bf16, fp16 or fp32, found 'int8'");
  CHECK(complaint("optimizer", "adamq") ==
        "--optimizer expects adamw, adam or sgd, found 'adamq': did you mean adam or adamw?");
  CHECK(complaint("optimizer-impl", "fuse") ==
        "--optimizer-impl expects foreach, fused or forloop, found 'fuse': did you mean fused?");
  CHECK(complaint("offload", "param") == "--offload expects none or params, found 'param': did you mean params?");
  CHECK(complaint("norm", "fusd") == "--norm expects composite or fused, found 'fusd': did you mean fused?");
  CHECK(
      complaint("reshard-after-forward", "alway") ==
      "--reshard-after-forward expects auto, always, never or a number of ranks, found 'alway': did you mean always?");
  CHECK(complaint("reshard-after-forward", "1") ==
        "--reshard-after-forward expects a whole number from 2 to 2147483647, found '1': that is too small");
  CHECK(complaint("wrap", "block") == "--wrap expects blocks, blocks:K or root, found 'block': did you mean blocks?");
  CHECK(complaint("wrap", "blocks:0") ==
        "--wrap expects a whole number from 1 to 2147483647, found '0': that is too small");
  for (const char* text : {"none", "-1", "inf", "nan", "0", "x"}) {
    if (std::string(text) == "none") continue;
    CHECK(complaint("clip-grad-norm", text) ==
          "--clip-grad-norm expects a number above 0, or none, found '" + std::string(text) + "'");
  }
}

TEST_CASE("a number of GPUs and the name of a GPU are not confused") {
  CHECK(complaint("gpu", "8") == "--gpu expects the name of a GPU, found '8': for the number of GPUs give --gpus 8");
  CHECK(complaint("gpus", "H100-80GB") ==
        "--gpus expects a number of GPUs, found 'H100-80GB': for the name of the GPU give --gpu H100-80GB");
  CHECK(complaint("gpus", "1048577") ==
        "--gpus expects a whole number from 1 to 1048576, found '1048577': that is too large");
  CHECK(complaint("gpus", "many") == "--gpus expects a whole number from 1 to 1048576, found 'many'");
}

TEST_CASE("an unknown form of checkpointing is refused with the known forms") {
  const std::string forms =
      "--checkpoint expects none, full, selective, every:K, selective:every:K or ranges as in "
      "full@0-15+selective@16-23, found ";
  CHECK(complaint("checkpoint", "ful") == forms + "'ful': did you mean full?");
  CHECK(complaint("checkpoint", "none:every:2") == forms + "'none:every:2'");
  CHECK(complaint("checkpoint", "fullevery:2") == forms + "'fullevery:2'");
  CHECK(complaint("checkpoint", "ful@1-2") == forms + "'ful': did you mean full?");
  CHECK(complaint("checkpoint", "every:0") ==
        "--checkpoint expects a whole number from 1 to 2147483647, found '0': that is too small");
  CHECK(complaint("checkpoint", "full@1-x") == "--checkpoint expects a whole number from 0 to 2147483647, found 'x'");
  CHECK(complaint("checkpoint", "full@3-1") ==
        "--checkpoint expects the first block of a range before its last, found 'full@3-1'");
  CHECK(complaint("checkpoint", "full@0-1+") ==
        "--checkpoint expects ranges of blocks as in full@0-15+selective@16-23, found ''");
}

TEST_CASE("ranges and every:K select the checkpointed blocks") {
  const Checkpoint every{.kind = CheckpointKind::kSelective, .every = 3};
  CHECK(every.of(0) == CheckpointKind::kNone);
  CHECK(every.of(2) == CheckpointKind::kSelective);
  CHECK(every.of(3) == CheckpointKind::kNone);
  CHECK(every.of(5) == CheckpointKind::kSelective);
  CHECK(Checkpoint{.kind = CheckpointKind::kFull}.of(7) == CheckpointKind::kFull);
  CHECK(Checkpoint{.kind = CheckpointKind::kFull, .every = 0}.of(7) == CheckpointKind::kFull);
  const Checkpoint ranges = with("checkpoint", "full@0-1+selective@3-3").checkpoint;
  CHECK(ranges.of(1) == CheckpointKind::kFull);
  CHECK(ranges.of(2) == CheckpointKind::kNone);
  CHECK(ranges.of(3) == CheckpointKind::kSelective);
  CHECK(ranges.of(4) == CheckpointKind::kNone);
}

TEST_CASE("the message for an unknown field names the nearest fields, or all") {
  CHECK(message_of<InvalidArgument>([] { find_field("batchsize"); }) ==
        "a job has no field 'batchsize': did you mean batch?");
  CHECK(message_of<InvalidArgument>([] {
          find_field("zzzzzzzzzzzz");
        }).starts_with("a job has no field 'zzzzzzzzzzzz': its fields are model, gpu, gpu-memory, "));
}

TEST_CASE("a typed value of another type is refused") {
  const auto refused = [](const std::string& field, const Value& value) {
    Job job;
    return message_of<InvalidArgument>([&] { set_value(job, find_field(field), value); });
  };
  CHECK(refused("batch", "4") == "'batch' must be a whole number, without quotes, found the text '4'");
  CHECK(refused("batch", 4.0) == "'batch' must be a whole number, without quotes, found 4");
  CHECK(refused("batch", nullptr) == "'batch' must be N, found null");
  CHECK(refused("keep_logits", "true") == "'keep_logits' must be true or false, without quotes, found the text 'true'");
  CHECK(refused("clip-grad-norm", true) == "'clip_grad_norm' must be a number, or \"none\", found true");
  CHECK(refused("clip-grad-norm", "1.0") == "'clip_grad_norm' must be a number, or \"none\", found the text '1.0'");
  CHECK(refused("gpu-memory", 1.5) == "'gpu_memory' must be an amount of memory, as in \"80GiB\", found 1.5");
  CHECK(refused("optimizer", false) == "'optimizer' must be a text in quotes (adamw|adam|sgd), found false");
  CHECK(refused("model", "") == "model expects a name or the path of a config.json, found nothing");
  Job job;
  set_value(job, find_field("clip-grad-norm"), nullptr);
  CHECK_FALSE(job.clip_grad_norm.has_value());
  set_value(job, find_field("clip-grad-norm"), std::int64_t{2});
  CHECK(job.clip_grad_norm == 2.0);
}

}  // namespace test_fields
