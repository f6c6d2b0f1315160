#include <doctest/doctest.h>

#include "job/messages.h"
#include "plimsoll/job/axes.h"

namespace test_axes {

using namespace plimsoll;
using namespace plimsoll::job;
using Texts = std::vector<std::string>;

namespace {

std::string complaint(const std::string& field, const std::string& text) {
  return message_of<InvalidArgument>([&] { parse_axis(field, text); });
}

}  // namespace

TEST_CASE("an axis is a list, a range, or a range that multiplies") {
  CHECK(parse_axis("batch", "1..4").values == Texts{"1", "2", "3", "4"});
  CHECK(parse_axis("batch", "1,2,4").values == Texts{"1", "2", "4"});
  CHECK(parse_axis("batch", "1..64*2").values == Texts{"1", "2", "4", "8", "16", "32", "64"});
  CHECK(parse_axis("batch", "3..50*3").values == Texts{"3", "9", "27"});
  CHECK(parse_axis("batch", "1..3,8,16..17").values == Texts{"1", "2", "3", "8", "16", "17"});
  CHECK(parse_axis("rank", "0..1").values == Texts{"0", "1"});
  CHECK(parse_axis("checkpoint", "none,selective,full@0-3+selective@4-5").values ==
        Texts{"none", "selective", "full@0-3+selective@4-5"});
  CHECK(parse_axis("keep_logits", "yes,no").values == Texts{"true", "false"});
  CHECK(parse_axis("clip-grad-norm", "none,1.0").values == Texts{"none", "1"});
  CHECK(parse_axis("model", "llama3-8b,llama3-70b").values == Texts{"llama3-8b", "llama3-70b"});
  CHECK(parse_axis("gpu", "a,b.json;c").values == Texts{"a,b.json", "c"});
  CHECK(parse_axis("batch", "2147483646..2147483647").values.size() == 2);
  CHECK(parse_axis("batch", "1..2147483647*2147483647").values == Texts{"1", "2147483647"});
}

TEST_CASE("an allocator's settings keep their commas") {
  CHECK(parse_axis("alloc-conf", "expandable_segments:True,max_split_size_mb:64").values.size() == 1);
  CHECK(parse_axis("alloc-conf", "a:1,b:2;c:3").values == Texts{"a:1,b:2", "c:3"});
}

TEST_CASE("wrong values of an axis are refused") {
  CHECK(complaint("batch", "1,x") == "--batch expects a whole number from 1 to 2147483647, found 'x'");
  CHECK(complaint("batch", "0..2").starts_with("--batch expects a whole number from 1"));
  CHECK(complaint("batch", "1,,2") ==
        "--batch expects values separated by commas, as in 1,2,4, found an empty value in '1,,2'");
  CHECK(complaint("keep-logits", "").starts_with("--keep-logits expects values separated by commas"));
  CHECK(complaint("batch", "8..1") == "--batch '8..1': the first value must not be above the last, as in 1..8");
  CHECK(complaint("batch", "..8").starts_with("--batch '..8': the first value expects a whole number"));
  CHECK(complaint("batch", "1..").starts_with("--batch '1..': the last value expects a whole number"));
  CHECK(complaint("batch", "1..8*1") ==
        "--batch '1..8*1': the factor expects a whole number from 2 to 2147483647, found '1': that is too small");
  CHECK(complaint("rank", "0..8*2") == "--rank '0..8*2': begin at 1, because 0 cannot be multiplied");
  CHECK(complaint("batch", "1..3,2") == "--batch has '2' twice");
  CHECK(complaint("param-dtype", "bf16,bfloat16") == "--param-dtype has 'bf16' twice");
  CHECK(complaint("batch", "1..10001") == "--batch has more than 10000 values, the limit of a sweep");
  CHECK(complaint("batch", "1..2147483647") == "--batch has more than 10000 values, the limit of a sweep");
  CHECK(complaint("bach", "1") == "a job has no field 'bach': did you mean batch?");
}

TEST_CASE("combinations go through all values, the last axis fastest") {
  const std::vector<Axis> axes = {parse_axis("batch", "1,2"), parse_axis("checkpoint", "none,full")};
  const auto jobs = combinations(Job{.model = "gpt2"}, axes);
  REQUIRE(jobs.size() == 4);
  CHECK(jobs[0] == Job{.model = "gpt2"});
  CHECK(jobs[1] == Job{.model = "gpt2", .checkpoint = {.kind = CheckpointKind::kFull}});
  CHECK(jobs[2] == Job{.model = "gpt2", .batch = 2});
  CHECK(jobs[3] == Job{.model = "gpt2", .batch = 2, .checkpoint = {.kind = CheckpointKind::kFull}});
  CHECK(combinations(Job{}, {}) == std::vector<Job>{Job{}});
}

TEST_CASE("too many combinations, and a field twice, are refused") {
  const Axis wide = parse_axis("batch", "1..10000");
  CHECK(combinations(Job{}, std::vector<Axis>{wide}).size() == 10000);
  CHECK(message_of<InvalidArgument>([&] {
          combinations(Job{}, std::vector<Axis>{wide, parse_axis("rank", "0..9999"), parse_axis("gpus", "1..10000")});
        }) == "the sweep has 10000 × 10000 × 10000 combinations, and the limit is 10000: give fewer values");
  CHECK(message_of<InvalidArgument>([&] { combinations(Job{}, std::vector<Axis>{wide, wide}); }) ==
        "--batch is given twice: give all values in one list");
}

}  // namespace test_axes
