#include <doctest/doctest.h>

#include "job/messages.h"
#include "plimsoll/job/job_file.h"

namespace test_job_file {

using namespace plimsoll;
using namespace plimsoll::job;

namespace {

Job read(const std::string& text, const std::vector<Setting>& flags = {}) {
  const TemporaryFolder folder;
  Job job;
  read_job_file(folder.write("job.toml", text), job, flags);
  return job;
}

/// Without the folder in front.
std::string complaint(const std::string& text, const std::vector<Setting>& flags = {}) {
  const TemporaryFolder folder;
  Job job;
  const auto path = folder.write("job.toml", text);
  const auto message = message_of<FormatError>([&] { read_job_file(path, job, flags); });
  return message.starts_with(path.string()) ? message.substr(path.string().size()) : message;
}

}  // namespace

TEST_CASE("our own form has the fields' names as keys, with dashes or underscores, typed") {
  const Job job = read(R"(
model = "llama3-8b"
gpu = "A100-80GB"
gpu_memory = "40GiB"
gpus = 16
seq-len = 4096
accum-no-sync = true
reshard_after_forward = 4
checkpoint = "full@0-15+selective@16-23"
clip_grad_norm = 0.5
)");
  CHECK(job.model == "llama3-8b");
  CHECK(job.gpu == "A100-80GB");
  CHECK(job.gpu_memory == Bytes{40} << 30);
  CHECK(job.gpus == 16);
  CHECK(job.seq_len == 4096);
  CHECK(job.accum_no_sync);
  CHECK(job.reshard_after_forward == Reshard{Reshard::Kind::kToMesh, 4});
  CHECK(job.checkpoint.ranges.size() == 2);
  CHECK(job.clip_grad_norm == 0.5);
  CHECK_FALSE(read("clip_grad_norm = \"none\"").clip_grad_norm.has_value());
}

TEST_CASE("flags win over the file") {
  CHECK(read("batch = 4\nsteps = 3", {{"batch", "2"}, {"gpus", "4"}}) == Job{.gpus = 4, .batch = 2, .steps = 3});
  CHECK(message_of<InvalidArgument>([] { read("", {{"batch", "x"}}); }).starts_with("--batch expects"));
}

TEST_CASE("paths are relative to the file; names stay") {
  const TemporaryFolder folder;
  folder.write("models/config.json", "{}");
  folder.write("gpt2/config.json", "{}");
  folder.write("tiny/config.json", "{}");
  const auto model = [&](const std::string& text) {
    Job job;
    const JobFile file = read_job_file(folder.write("job.toml", "model = '" + text + "'"), job);
    CHECK_FALSE(file.torchtitan);
    CHECK(file.passed_over.empty());
    return job.model;
  };
  CHECK(model("models/config.json") == (folder.path / "models/config.json").string());
  CHECK(model("config.json") == (folder.path / "config.json").string());
  CHECK(model("/absolute/config.json") == "/absolute/config.json");
  CHECK(model("tiny") == (folder.path / "tiny").string());
  CHECK(model("gpt2") == "gpt2");
  CHECK(model("llama9") == "llama9");
  Job job;
  read_job_file(folder.write("job.toml", "gpu = 'cards/mine.json'"), job);
  CHECK(job.gpu == (folder.path / "cards/mine.json").string());
}

TEST_CASE("the message for a wrong field of our form has its line") {
  CHECK(complaint("\nbatchsize = 1") == ":2: a job has no field 'batchsize': did you mean batch?");
  CHECK(complaint("batch = \"4\"") == ":1: 'batch' must be a whole number, without quotes, found the text '4'");
  CHECK(complaint("batch = 0") ==
        ":1: --batch expects a whole number from 1 to 2147483647, found '0': that is too small");
  CHECK(complaint("batch = [1]") == ":1: 'batch' must be a text, a number, true or false, found an array");
  CHECK(complaint("[batch]") == ":1: 'batch' must be a text, a number, true or false, found a table");
  CHECK(complaint("seq-len = 1\nseq_len = 2") == ":1: 'seq-len' appears twice: as 'seq_len' in line 2");
  CHECK(complaint("batch = ") == ":1: not valid TOML: key-value pair: encountered end-of-file");
}

}  // namespace test_job_file
