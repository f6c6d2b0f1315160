#include <doctest/doctest.h>

#include <algorithm>

#include "plimsoll/cli/search/variants.h"
#include "plimsoll/job/model.h"

namespace test_changes {

using namespace plimsoll::cli;
using namespace plimsoll::job;
using Texts = std::vector<std::string>;

namespace {

Texts texts(const Job& job, const std::string& model = "llama3-8b") {
  Texts list;
  for (const Change& change : single_changes(job, find_model(model))) list.push_back(change.text);
  return list;
}

bool has(const Texts& list, const std::string& text) { return std::find(list.begin(), list.end(), text) != list.end(); }

}  // namespace

TEST_CASE("every single change to the usual job") {
  CHECK(texts({}) == Texts{"--checkpoint selective", "--checkpoint full", "--reshard-after-forward always",
                           "--reshard-after-forward never", "--keep-last-block false", "--wrap blocks:2", "--wrap root",
                           "--optimizer-impl fused", "--optimizer-impl forloop", "--offload params",
                           "--reduce-dtype bf16", "--norm fused", "--loss-fp32 false", "--gpus 16",
                           "--alloc-conf expandable_segments:True", "--clip-grad-norm none"});
}

TEST_CASE("a change that changes nothing is left out") {
  const Texts list = texts({.gpus = 16,
                            .replicas = 2,
                            .batch = 4,
                            .grad_accum = 2,
                            .reduce_dtype = Dtype::kBf16,
                            .reshard_after_forward = {Reshard::Kind::kNever},
                            .wrap = {0},
                            .checkpoint = {CheckpointKind::kFull},
                            .optimizer_impl = OptimizerImpl::kFused,
                            .offload = Offload::kParams,
                            .clip_grad_norm = std::nullopt,
                            .loss_fp32 = false,
                            .keep_logits = true,
                            .norm = Norm::kFused,
                            .alloc_conf = "expandable_segments:True"});
  CHECK(list == Texts{"--checkpoint selective", "--reshard-after-forward always", "--wrap blocks", "--wrap blocks:2",
                      "--optimizer-impl forloop", "--optimizer-impl foreach", "--keep-logits false",
                      "--batch 2 --grad-accum 4", "--gpus 32", "--replicas 1"});
}

TEST_CASE("changes that the job does not allow are left out") {
  CHECK_FALSE(has(texts({.gpus = 4, .replicas = 2, .reshard_after_forward = {Reshard::Kind::kToMesh, 3}}), "--gpus 8"));
  CHECK_FALSE(has(texts({}, "gpt2"), "--norm fused"));
  CHECK(has(texts({.alloc_conf = "max_split_size_mb:128"}),
            "--alloc-conf max_split_size_mb:128,expandable_segments:True"));
}

TEST_CASE("each job has the change of its text") {
  const auto changes = single_changes({.batch = 2}, find_model("llama3-8b"));
  const auto found = std::find_if(changes.begin(), changes.end(),
                                  [](const Change& change) { return change.text == "--batch 1 --grad-accum 2"; });
  REQUIRE(found != changes.end());
  CHECK(found->job == Job{.batch = 1, .grad_accum = 2});
}

}  // namespace test_changes
