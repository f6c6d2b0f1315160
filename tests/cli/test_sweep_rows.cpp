#include <doctest/doctest.h>

#include <fstream>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/documents.h"
#include "plimsoll/cli/search/variants.h"

namespace test_sweep_rows {

using namespace plimsoll::cli;
using plimsoll::InvalidArgument;
using Texts = std::vector<std::string>;

namespace {

const Installation kInstallation{PLIMSOLL_SOURCE_DIR, "/nowhere"};

SweepJobs sweep(std::vector<plimsoll::job::Setting> flags) {
  flags.insert(flags.begin(), {"model", "llama3-8b"});
  return sweep_jobs({.file = std::nullopt, .flags = std::move(flags)}, kInstallation);
}

}  // namespace

TEST_CASE("flags with several values are axes, the last of them fastest") {
  const SweepJobs jobs = sweep({{"gpus", "8,16"}, {"seq-len", "1024"}, {"checkpoint", "none,full"}});
  CHECK(jobs.axes == Texts{"gpus", "checkpoint"});
  REQUIRE(jobs.rows.size() == 4);
  CHECK(jobs.rows[0].values == Texts{"8", "none"});
  CHECK(jobs.rows[1].values == Texts{"8", "full"});
  CHECK(jobs.rows[2].values == Texts{"16", "none"});
  CHECK(jobs.rows[3].job->gpus == 16);
  CHECK(jobs.rows[3].job->seq_len == 1024);
  CHECK(jobs.rows[3].job->checkpoint.kind == plimsoll::job::CheckpointKind::kFull);
}

TEST_CASE("commas in the allocator's settings do not separate values") {
  const SweepJobs jobs = sweep({{"batch", "1..3"}, {"alloc-conf", "a:1,b:2"}});
  CHECK(jobs.axes == Texts{"batch"});
  CHECK(jobs.rows.at(2).job->alloc_conf == "a:1,b:2");
  CHECK(sweep({{"alloc-conf", "a:1,b:2;c:3"}}).rows.size() == 2);
}

TEST_CASE("a wrong combination is a row with its error") {
  const SweepJobs jobs = sweep({{"gpus", "4,8"}, {"replicas", "1,8"}});
  REQUIRE(jobs.rows.size() == 4);
  CHECK(jobs.rows[0].job.has_value());
  CHECK_FALSE(jobs.rows[1].job.has_value());
  CHECK(jobs.rows[1].error.starts_with("--replicas 8 does not divide --gpus 4"));
  CHECK(sweep({{"gpu", "H100-80GB,toaster"}}).rows.at(1).error.starts_with("unknown GPU 'toaster'"));
  CHECK(sweep({{"gpu-memory", "1MiB,40GiB"}}).rows.at(0).error.starts_with("--gpu-memory 1.00 MiB is too small"));
}

TEST_CASE("a sweep without a job that can be run is refused") {
  CHECK_THROWS_WITH_AS(sweep({{"batch", "2"}}),
                       "nothing to sweep: give a flag several values, as in --batch 1,2,4 or --gpus 8..64*2",
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(
      sweep({{"gpus", "2,4"}, {"rank", "7"}}),
      "none of the 2 combinations can be run. The first: --rank 7 does not exist: the ranks of --gpus 2 "
      "are 0 to 1",
      InvalidArgument);
  CHECK_THROWS_WITH_AS(sweep({{"batch", "1,x"}}), doctest::Contains("--batch expects a whole number"), InvalidArgument);
  CHECK_THROWS_WITH_AS(sweep({{"batch", "1..200"}, {"gpus", "1..200"}}),
                       doctest::Contains("the sweep has 200 × 200 combinations"), InvalidArgument);
}

TEST_CASE("fields that torchtitan derives from a global batch follow each row's values") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "titan.toml";
  std::ofstream(file) << "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\n"
                         "global_batch_size = 32\nseq_len = 2048\n";
  const SweepJobs jobs = sweep_jobs({.file = file.string(), .flags = {{"gpus", "8,16,24"}}}, kInstallation);
  CHECK(jobs.file.torchtitan);
  CHECK(jobs.rows.at(0).job->grad_accum == 4);
  CHECK(jobs.rows.at(1).job->grad_accum == 2);
  CHECK_FALSE(jobs.rows.at(2).job.has_value());
}

}  // namespace test_sweep_rows
