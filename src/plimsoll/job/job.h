#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"

/// The settings of a training run: model, GPUs, sharding, checkpointing, optimizer. The defaults are torchtitan's.
namespace plimsoll::job {

enum class Dtype : std::uint8_t { kFp32, kBf16, kFp16 };
enum class OptimizerKind : std::uint8_t { kAdamW, kAdam, kSgd };
enum class OptimizerImpl : std::uint8_t { kForeach, kFused, kForLoop };
enum class Offload : std::uint8_t { kNone, kParams };
enum class Norm : std::uint8_t { kComposite, kFused };

/// Whether FSDP2 frees a block after forward and gathers it again in backward.
struct Reshard {
  enum class Kind : std::uint8_t {
    kAuto,    ///< FSDP2's default: blocks, but not the root.
    kAlways,  ///< Also the root.
    kNever,
    kToMesh,  ///< After forward a block is sharded over `ranks` ranks, a divisor of gpus / replicas.
  };
  Kind kind = Kind::kAuto;
  std::int64_t ranks = 0;
  bool operator==(const Reshard&) const = default;
};

/// The activations that a block keeps for backward.
enum class CheckpointKind : std::uint8_t {
  kNone,       ///< All.
  kFull,       ///< Only the block's inputs; backward computes the rest again.
  kSelective,  ///< The results of attention and of every second matmul.
};

/// The checkpointing of each block.
struct Checkpoint {
  /// Blocks `first` to `last`, both included.
  struct Range {
    std::int64_t first = 0;
    std::int64_t last = 0;
    CheckpointKind kind = CheckpointKind::kNone;
    bool operator==(const Range&) const = default;
  };
  CheckpointKind kind = CheckpointKind::kNone;  ///< For all blocks, if `ranges` is empty.
  std::int64_t every = 1;                       ///< Only every N-th block, as torchtitan counts.
  std::vector<Range> ranges = {};               ///< If not empty: for these blocks; other blocks keep all.

  /// Of one block; the first is 0.
  CheckpointKind of(std::int64_t block) const {
    if (ranges.empty()) return every <= 1 || (block + 1) % every == 0 ? kind : CheckpointKind::kNone;
    for (const Range& range : ranges) {
      if (range.first <= block && block <= range.last) return range.kind;
    }
    return CheckpointKind::kNone;
  }
  bool operator==(const Checkpoint&) const = default;
};

/// The modules besides the root that fully_shard is applied to.
struct Wrap {
  /// The number of consecutive blocks in one unit; 0: all blocks belong to the root.
  std::int64_t blocks = 1;
  bool operator==(const Wrap&) const = default;
};

struct Job {
  std::string model = {};  ///< A preset's name, or the path of a config.json.

  std::string gpu = "H100-80GB";  ///< The name or the path of a profile.
  std::optional<Bytes> gpu_memory = {};
  std::int64_t gpus = 8;
  std::int64_t replicas = 1;  ///< HSDP: the number of replicas, each sharded over gpus / replicas GPUs.
  std::int64_t rank = 0;

  std::int64_t batch = 1;                    ///< Sequences per GPU and forward.
  std::optional<std::int64_t> seq_len = {};  ///< Absent: 8192, or the number of positions that the model learns.
  std::int64_t steps = 2;
  std::int64_t grad_accum = 1;
  bool accum_no_sync = false;  ///< Only the last backward of a step reduces gradients.

  Dtype param_dtype = Dtype::kBf16;
  Dtype reduce_dtype = Dtype::kFp32;
  Dtype master_dtype = Dtype::kFp32;
  Reshard reshard_after_forward = {};
  bool keep_last_block = true;  ///< Do not free the last block after forward: backward needs it first.
  Wrap wrap = {};
  Checkpoint checkpoint = {};

  OptimizerKind optimizer = OptimizerKind::kAdamW;
  OptimizerImpl optimizer_impl = OptimizerImpl::kForeach;
  Offload offload = Offload::kNone;
  std::optional<double> clip_grad_norm = 1.0;  ///< Absent: no clipping.
  bool loss_fp32 = true;                       ///< Cast logits to fp32.
  bool keep_logits = false;                    ///< Keep the logits until the next step.
  Norm norm = Norm::kComposite;
  std::optional<std::string> alloc_conf = {};  ///< PYTORCH_ALLOC_CONF.

  bool operator==(const Job&) const = default;
};

}  // namespace plimsoll::job
