#include <doctest/doctest.h>

#include <random>

#include "job/messages.h"
#include "plimsoll/job/fields.h"
#include "plimsoll/job/job_file.h"

namespace test_job_json {

using namespace plimsoll;
using namespace plimsoll::job;

namespace {

std::string complaint(const std::string& text) {
  return message_of<FormatError>([&] { job_from_json(text, "j"); });
}

}  // namespace

TEST_CASE("a written job has typed values, the model first, and reads back as the same job") {
  const Job bare{.model = "llama3-8b"};
  CHECK(
      to_json(bare).starts_with("{\n  \"model\": \"llama3-8b\",\n  \"gpu\": \"H100-80GB\",\n  \"gpu_memory\": null,\n"
                                "  \"gpus\": 8,\n"));
  CHECK(job_from_json(to_json(bare), "j") == bare);
  Job full{.model = "a \"model\"\n", .gpu_memory = Bytes{40} << 30, .seq_len = 7, .accum_no_sync = true};
  for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{{"reshard-after-forward", "4"},
                                                                                   {"wrap", "root"},
                                                                                   {"checkpoint", "full@0-3"},
                                                                                   {"clip-grad-norm", "none"},
                                                                                   {"alloc-conf", "a:1,b:2"},
                                                                                   {"keep-last-block", "no"},
                                                                                   {"offload", "params"},
                                                                                   {"norm", "fused"}}) {
    find_field(name).set(full, text);
  }
  const std::string json = to_json(full);
  CHECK(json.find("\"gpu_memory\": 42949672960,") != std::string::npos);
  CHECK(json.find("\"accum_no_sync\": true,") != std::string::npos);
  CHECK(json.find("\"reshard_after_forward\": 4,") != std::string::npos);
  CHECK(json.find("\"clip_grad_norm\": null,") != std::string::npos);
  CHECK(job_from_json(json, "j") == full);
  Job real{.model = "m", .clip_grad_norm = 0.1 + 0.2};
  CHECK(job_from_json(to_json(real), "j") == real);
}

TEST_CASE("a missing field has its default; memory may have a unit") {
  CHECK(job_from_json(R"({"model": "gpt2", "batch": 2, "gpu_memory": "80GiB"})", "j") ==
        Job{.model = "gpt2", .gpu_memory = Bytes{80} << 30, .batch = 2});
}

TEST_CASE("other JSON than a job is refused") {
  CHECK(complaint("{") == "j: not valid JSON: line 1, column 2");
  CHECK(complaint("{\"model\": 1e999}") == "j: not valid JSON: a number is out of range");
  CHECK(complaint("3") == "j: expected a JSON object with the fields of a job, found number");
  CHECK(complaint("[]") == "j: expected a JSON object with the fields of a job, found array");
  CHECK(complaint("{}") == "j: 'model' is missing: expected a name or the path of a config.json");
  CHECK(complaint(R"({"model": ""})") == "j: model expects a name or the path of a config.json, found nothing");
  CHECK(complaint(R"({"model": "m", "model": "n"})") == "j: 'model' appears twice");
  CHECK(complaint(R"({"model": "m", "batch": [1]})") == "j: the values of a job are plain, found an object or a list");
  CHECK(complaint(std::string(100000, '[')) == "j: the values of a job are plain, found an object or a list");
  CHECK(complaint(R"({"model": "m", "bach": 1})") == "j: a job has no field 'bach': did you mean batch?");
  CHECK(complaint(R"({"model": "m", "batch": "1"})") ==
        "j: 'batch' must be a whole number, without quotes, found the text '1'");
  CHECK(complaint(R"({"model": "m", "batch": 18446744073709551615})") ==
        "j: 'batch' is beyond 64 bits: 18446744073709551615");
  CHECK(complaint(R"({"model": "m", "batch": -1})").starts_with("j: --batch expects a whole number from 1"));
}

TEST_CASE("a job with a text that is not UTF-8 cannot be written") {
  CHECK(message_of<InvalidArgument>([] {
          to_json(Job{.model = "/m\xFF.json"});
        }).starts_with("a setting of the job is not UTF-8: rename the file that it names. The model is '/m\xFF"));
}

TEST_CASE("a hostile document gives a job or a FormatError") {
  std::mt19937 random(7);
  const std::string seed = to_json(Job{.model = "m", .seq_len = 5, .alloc_conf = "x"});
  for (int round = 0; round < 3000; ++round) {
    std::string text = seed;
    for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
      text[random() % text.size()] = "{}[]\",:0-e.ntf\\\x01\xFF"[random() % 17];
    }
    try {
      job_from_json(text, "j");
    } catch (const FormatError&) {
    }
  }
}

}  // namespace test_job_json
