#include <doctest/doctest.h>

#include "plimsoll/cli/process/environment.h"

namespace test_environment {

using namespace plimsoll::cli;

namespace {

RunOptions job(std::int64_t world_size, std::int64_t rank, std::optional<std::int64_t> per_node = {}) {
  RunOptions options;
  options.world_size = world_size;
  options.rank = rank;
  options.gpus_per_node = per_node;
  return options;
}

const ChildFiles kFiles{
    "/lib/pretend", {"/lib/pretend/libcuda.so.1", "/lib/pretend/libnccl.so.2"}, "/tmp/p.json", "{}"};

}  // namespace

TEST_CASE("ranks fill one node after the other, as torchrun places them") {
  const Environment environment = child_environment(job(20, 18), kFiles, {});
  CHECK(environment.at("RANK") == "18");
  CHECK(environment.at("WORLD_SIZE") == "20");
  CHECK(environment.at("LOCAL_RANK") == "2");
  CHECK(environment.at("LOCAL_WORLD_SIZE") == "4");
  CHECK(environment.at("GROUP_RANK") == "2");
  CHECK(environment.at("GROUP_WORLD_SIZE") == "3");
  CHECK(environment.at("ROLE_RANK") == "18");
  CHECK(environment.at("ROLE_WORLD_SIZE") == "20");
  CHECK(environment.at("ROLE_NAME") == "default");
  CHECK(environment.at("MASTER_ADDR") == "127.0.0.1");
  CHECK(environment.at("MASTER_PORT") == "29500");
  CHECK(environment.at("TORCHELASTIC_RUN_ID") == "plimsoll");
  CHECK(environment.at("TORCHELASTIC_RESTART_COUNT") == "0");
  CHECK(environment.at("TORCHELASTIC_MAX_RESTARTS") == "0");
  CHECK(environment.at("TORCHELASTIC_USE_AGENT_STORE") == "False");
  CHECK(environment.at("PLIMSOLL_GPUS") == "8");
}

TEST_CASE("--gpus-per-node sets the GPUs of a machine, even if the job has fewer ranks") {
  CHECK(card_count(job(1, 0, 4)) == 4);
  CHECK(placement(job(1, 0, 4)).local_world_size == 1);
  CHECK(card_count(job(64, 0, 4)) == 4);
  CHECK(placement(job(64, 9, 4)).node == 2);
  CHECK(child_environment(job(1, 0, 4), kFiles, {}).at("PLIMSOLL_GPUS") == "4");
}

TEST_CASE("by default a node has not more GPUs than the job has ranks") {
  CHECK(card_count(job(1, 0)) == 1);
  CHECK(card_count(job(4, 0)) == 4);
  CHECK(card_count(job(64, 0)) == 8);
  CHECK(placement(job(1, 0)).local_world_size == 1);
  CHECK(placement(job(16384, 16383)).node == 2047);
  CHECK(placement(job(16384, 16383)).local_rank == 7);
}

TEST_CASE("the pretend libraries come before the user's own preloads") {
  CHECK(child_environment(job(1, 0), kFiles, {}).at("LD_PRELOAD") ==
        "/lib/pretend/libcuda.so.1:/lib/pretend/libnccl.so.2");
  CHECK(child_environment(job(1, 0), kFiles, {{"LD_PRELOAD", "libmine.so"}}).at("LD_PRELOAD") ==
        "/lib/pretend/libcuda.so.1:/lib/pretend/libnccl.so.2:libmine.so");
  ChildFiles none = kFiles;
  none.libraries.clear();
  CHECK(child_environment(job(1, 0), none, {{"LD_PRELOAD", "libmine.so"}}).at("LD_PRELOAD") == "libmine.so");
}

TEST_CASE("the child gets its profile and its settings") {
  RunOptions options = job(1, 0);
  options.event_lag = 5;
  const Environment environment = child_environment(options, kFiles, {{"CUDA_VISIBLE_DEVICES", "1"}, {"HOME", "/me"}});
  CHECK(environment.at("PLIMSOLL_PRETEND_DIR") == "/lib/pretend");
  CHECK(environment.at("TRITON_LIBCUDA_PATH") == "/lib/pretend");
  CHECK(environment.at("PLIMSOLL_GPU_PROFILE") == "/tmp/p.json");
  CHECK(environment.at("PLIMSOLL_EVENT_LAG") == "5");
  CHECK(environment.at("PLIMSOLL_RUN") == "{}");
  CHECK(environment.at("HOME") == "/me");
  CHECK_FALSE(environment.contains("CUDA_VISIBLE_DEVICES"));
}

TEST_CASE("variables of the environment do not change the GPU") {
  const Environment inherited{{"PLIMSOLL_GPU_PROFILE", "/other.json"},
                              {"PLIMSOLL_GPU_MEMORY", "1073741824"},
                              {"PLIMSOLL_GPUS", "3"},
                              {"PLIMSOLL_EVENT_LAG", "7"},
                              {"PLIMSOLL_PLANNER", "/mine"}};
  const Environment environment = child_environment(job(1, 0), kFiles, inherited);
  CHECK(environment.at("PLIMSOLL_GPU_PROFILE") == "/tmp/p.json");
  CHECK_FALSE(environment.contains("PLIMSOLL_GPU_MEMORY"));
  CHECK(environment.at("PLIMSOLL_GPUS") == "1");
  CHECK(environment.at("PLIMSOLL_EVENT_LAG") == "0");
  CHECK(environment.at("PLIMSOLL_PLANNER") == "/mine");
}

TEST_CASE("the allocator's settings have the old and the new name, only if they are given") {
  RunOptions options = job(1, 0);
  CHECK_FALSE(child_environment(options, kFiles, {}).contains("PYTORCH_ALLOC_CONF"));
  options.alloc_conf = "expandable_segments:True";
  const Environment environment = child_environment(options, kFiles, {});
  CHECK(environment.at("PYTORCH_ALLOC_CONF") == "expandable_segments:True");
  CHECK(environment.at("PYTORCH_CUDA_ALLOC_CONF") == "expandable_segments:True");
}

TEST_CASE("the user's number of threads wins") {
  CHECK(child_environment(job(1, 0), kFiles, {}).at("OMP_NUM_THREADS") == "1");
  CHECK(child_environment(job(1, 0), kFiles, {{"OMP_NUM_THREADS", "6"}}).at("OMP_NUM_THREADS") == "6");
}

}  // namespace test_environment
