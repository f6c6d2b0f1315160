#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"

/// A training job as a person describes it: which model, on which GPUs, how it is sharded, checkpointed and optimised.
/// Defaults are torchtitan's conventions.
namespace plimsoll::job {

enum class Dtype : std::uint8_t { kFp32, kBf16, kFp16 };
enum class OptimizerKind : std::uint8_t { kAdamW, kAdam, kSgd };
enum class OptimizerImpl : std::uint8_t { kForeach, kFused, kForLoop };
enum class Offload : std::uint8_t { kNone, kParams };
enum class Norm : std::uint8_t { kComposite, kFused };

/// Whether blocks are freed after forward and gathered again in backward.
struct Reshard {
  enum class Kind : std::uint8_t {
    kAuto,    ///< As FSDP2's default: blocks are, the root is not.
    kAlways,  ///< The root too.
    kNever,
    kToMesh,  ///< Blocks are kept sharded over `ranks` ranks, which divide those that share the parameters.
  };
  Kind kind = Kind::kAuto;
  std::int64_t ranks = 0;
  bool operator==(const Reshard&) const = default;
};

/// What one block does with its activations.
enum class CheckpointKind : std::uint8_t {
  kNone,       ///< All are kept.
  kFull,       ///< Only the block's inputs; the rest is computed again.
  kSelective,  ///< Attention's and every other matmul's results are kept.
};

/// Which blocks do what.
struct Checkpoint {
  /// Blocks `first` to `last`, both included.
  struct Range {
    std::int64_t first = 0;
    std::int64_t last = 0;
    CheckpointKind kind = CheckpointKind::kNone;
    bool operator==(const Range&) const = default;
  };
  CheckpointKind kind = CheckpointKind::kNone;  ///< Of all blocks, where the others say nothing.
  std::int64_t every = 1;                       ///< Only the last of each so many blocks, as torchtitan counts.
  std::vector<Range> ranges = {};               ///< Where not empty: of these blocks, and the others keep all.

  /// Of one block, the first being 0.
  CheckpointKind of(std::int64_t block) const;
  bool operator==(const Checkpoint&) const = default;
};

/// What fully_shard is applied to, beside the root.
struct Wrap {
  /// So many blocks, one after the other, are a unit that is gathered together; 0: none are, all belongs to the root.
  std::int64_t blocks = 1;
  bool operator==(const Wrap&) const = default;
};

struct Job {
  std::string model = {};  ///< A preset's name, or the path of a config.json.

  std::string gpu = "H100-80GB";  ///< A profile's name, or the path of one.
  std::optional<Bytes> gpu_memory = {};
  std::int64_t gpus = 8;
  std::int64_t replicas = 1;  ///< HSDP: so many replicas, each sharded over gpus / replicas.
  std::int64_t rank = 0;

  std::int64_t batch = 1;                    ///< Sequences for each GPU and forward.
  std::optional<std::int64_t> seq_len = {};  ///< Absent: 8192, or the model's longest where it learns its positions.
  std::int64_t steps = 2;
  std::int64_t grad_accum = 1;
  bool accum_no_sync = false;  ///< Gradients are reduced in the last of them only.

  Dtype param_dtype = Dtype::kBf16;
  Dtype reduce_dtype = Dtype::kFp32;
  Dtype master_dtype = Dtype::kFp32;
  Reshard reshard_after_forward = {};
  bool keep_last_block = true;  ///< The last block is not freed after forward: backward needs it first.
  Wrap wrap = {};
  Checkpoint checkpoint = {};

  OptimizerKind optimizer = OptimizerKind::kAdamW;
  OptimizerImpl optimizer_impl = OptimizerImpl::kForeach;
  Offload offload = Offload::kNone;
  std::optional<double> clip_grad_norm = 1.0;  ///< Absent: gradients are not clipped.
  bool loss_fp32 = true;                       ///< Logits are cast to fp32.
  bool keep_logits = false;                    ///< The loop holds them until the next ones are there.
  Norm norm = Norm::kComposite;
  std::optional<std::string> alloc_conf = {};  ///< PYTORCH_ALLOC_CONF.

  bool operator==(const Job&) const = default;
};

}  // namespace plimsoll::job
