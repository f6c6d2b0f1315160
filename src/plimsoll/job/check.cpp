#include "plimsoll/job/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/errors.h"
#include "plimsoll/job/values.h"

namespace plimsoll::job {
namespace {

using architecture::Architecture;

constexpr std::int64_t kUsualSequence = 8192;

template <class... Values>
[[noreturn]] void refuse(fmt::format_string<Values...> message, Values&&... values) {
  throw InvalidArgument(fmt::format(message, std::forward<Values>(values)...));
}

bool learns_positions(const Architecture& a) { return a.rope_theta == 0; }

/// The divisors between 1 and `number`, at most twelve.
std::string divisors(std::int64_t number) {
  constexpr std::size_t kMost = 12;
  std::set<std::int64_t> found;
  for (std::int64_t ranks = 2; ranks * ranks <= number; ++ranks) {
    if (number % ranks == 0) found.insert({ranks, number / ranks});
  }
  std::vector<std::string> list;
  for (const std::int64_t ranks : found) {
    if (list.size() < kMost) list.push_back(std::to_string(ranks));
  }
  return listed(list);
}

void check_counts(const Job& job) {
  const std::pair<const char*, std::int64_t> counts[] = {
      {"--gpus", job.gpus},   {"--replicas", job.replicas},     {"--batch", job.batch},
      {"--steps", job.steps}, {"--grad-accum", job.grad_accum}, {"--seq-len", job.seq_len.value_or(1)}};
  for (const auto& [flag, number] : counts) {
    if (number < 1) refuse("{} must be at least 1, found {}", flag, number);
  }
}

void check_ranks(const Job& job) {
  if (job.gpus > kMostGpus) {
    refuse("--gpus {} is too many: give at most {}", job.gpus, kMostGpus);
  }
  if (job.gpus % job.replicas != 0) {
    refuse("--replicas {} does not divide --gpus {}: each replica is sharded over gpus / replicas GPUs", job.replicas,
           job.gpus);
  }
  if (job.rank < 0 || job.rank >= job.gpus) {
    refuse("--rank {} does not exist: the ranks of --gpus {} are 0 to {}", job.rank, job.gpus, job.gpus - 1);
  }
}

void check_reshard(const Job& job, std::int64_t shards) {
  if (job.reshard_after_forward.kind != Reshard::Kind::kToMesh) return;
  const std::int64_t ranks = job.reshard_after_forward.ranks;
  if (ranks > 1 && ranks < shards && shards % ranks == 0) return;
  const std::string possible = divisors(shards);
  refuse("--reshard-after-forward {} must divide gpus / replicas = {}, and be above 1 and below it: give {}", ranks,
         shards, possible.empty() ? "auto, always or never" : possible);
}

/// At least as many as any parameter has; for every family as if its projections were fused.
std::int64_t most_rows(const Architecture& a) {
  std::int64_t rows = std::max({a.vocabulary, a.dim, 2 * a.hidden, (a.heads + 2 * a.kv_heads) * a.head_dim});
  if (a.experts) rows = std::max({rows, a.experts->count, 2 * a.experts->hidden});
  return learns_positions(a) ? std::max(rows, a.positions) : rows;
}

void check_shards(std::int64_t shards, const Architecture& a) {
  if (shards <= most_rows(a)) return;
  refuse(
      "gpus / replicas = {} GPUs are more than the {} rows of the largest parameter: FSDP2 shards dimension 0, so some "
      "GPUs would hold nothing. Give fewer --gpus or more --replicas",
      shards, most_rows(a));
}

/// If there are more GPUs than experts, each expert is split along its width, into equal parts.
void check_experts(std::int64_t shards, const Architecture& a) {
  if (!a.experts || shards <= a.experts->count) return;
  const std::int64_t hidden = a.experts->hidden;
  if (hidden % shards == 0 && a.dim % shards == 0) return;
  refuse(
      "gpus / replicas = {} GPUs are more than the {} experts, and do not divide the experts' width {} and the hidden "
      "size {}: give --gpus and --replicas so that gpus / replicas is at most {} or divides both",
      shards, a.experts->count, hidden, a.dim, a.experts->count);
}

void check_optimizer(const Job& job) {
  if (is_sharded(job) && job.optimizer == OptimizerKind::kSgd && job.optimizer_impl == OptimizerImpl::kFused) {
    refuse("--optimizer-impl fused with --optimizer sgd: torch has no fused SGD for sharded parameters; give foreach");
  }
}

void check_alloc_conf(const Job& job) {
  if (job.alloc_conf && job.alloc_conf->find("backend:cudaMallocAsync") != std::string::npos) {
    refuse(
        "--alloc-conf backend:cudaMallocAsync: plans need the statistics of PyTorch's own caching allocator; `plimsoll "
        "run` takes this backend");
  }
}

void check_sequence(const Job& job, const Architecture& a) {
  const std::int64_t tokens = sequence(job, a);
  if (learns_positions(a) && tokens > a.positions) {
    refuse("--seq-len {} is longer than the {} positions that the model learns", tokens, a.positions);
  }
  // The largest tensor, in fp32: the logits, or the widest activation.
  std::pair<std::int64_t, const char*> widest{a.vocabulary, "vocabulary"};
  widest = std::max(widest, {a.dim, "hidden size"});
  widest = std::max(widest, {a.hidden, "feed-forward width"});
  widest = std::max(widest, {(a.heads + 2 * a.kv_heads) * a.head_dim, "width of attention"});
  if (a.experts) widest = std::max(widest, {a.experts->hidden * a.experts->per_token, "width of a token's experts"});
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(job.batch, tokens, &bytes) || __builtin_mul_overflow(bytes, widest.first, &bytes) ||
      bytes >= (std::int64_t{1} << 60)) {
    refuse("--batch {} × sequence {} × {} {} × 4 bytes is beyond 2^62 bytes: give a smaller --batch or --seq-len",
           job.batch, tokens, widest.second, widest.first);
  }
}

void check_checkpoint(const Job& job, const Architecture& a) {
  std::vector<Checkpoint::Range> ranges = job.checkpoint.ranges;
  std::sort(ranges.begin(), ranges.end(), [](const auto& one, const auto& other) { return one.first < other.first; });
  const auto written = [](const Checkpoint::Range& range) { return text_of(Checkpoint{.ranges = {range}}); };
  for (std::size_t index = 0; index < ranges.size(); ++index) {
    if (ranges[index].first < 0 || ranges[index].last >= a.blocks) {
      refuse("--checkpoint {} names blocks that do not exist: the model has blocks 0 to {}", written(ranges[index]),
             a.blocks - 1);
    }
    if (index > 0 && ranges[index].first <= ranges[index - 1].last) {
      refuse("--checkpoint has ranges that overlap: {} and {}. Each block can be in one range",
             written(ranges[index - 1]), written(ranges[index]));
    }
  }
  if (ranges.empty() && job.checkpoint.kind != CheckpointKind::kNone && job.checkpoint.every > a.blocks) {
    refuse("--checkpoint every:{} is beyond the model's {} blocks", job.checkpoint.every, a.blocks);
  }
}

}  // namespace

std::int64_t sequence(const Job& job, const Architecture& architecture) {
  if (job.seq_len) return *job.seq_len;
  return learns_positions(architecture) ? std::min(kUsualSequence, architecture.positions) : kUsualSequence;
}

bool is_sharded(const Job& job) { return job.gpus > 1 || job.offload == Offload::kParams; }

void check(const Job& job, const Architecture& architecture) {
  check_counts(job);
  check_ranks(job);
  const std::int64_t shards = job.gpus / job.replicas;
  check_reshard(job, shards);
  check_shards(shards, architecture);
  check_experts(shards, architecture);
  check_sequence(job, architecture);
  check_optimizer(job);
  check_alloc_conf(job);
  if (job.accum_no_sync && job.grad_accum < 2) {
    refuse(
        "--accum-no-sync needs --grad-accum of 2 or more, found {}: a step with one backward pass has nothing to "
        "postpone",
        job.grad_accum);
  }
  if (job.wrap.blocks > architecture.blocks) {
    refuse("--wrap blocks:{} is beyond the model's {} blocks: for one unit give root", job.wrap.blocks,
           architecture.blocks);
  }
  check_checkpoint(job, architecture);
}

}  // namespace plimsoll::job
