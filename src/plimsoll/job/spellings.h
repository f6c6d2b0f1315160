#pragma once

#include <span>
#include <string>
#include <string_view>

#include "plimsoll/job/job.h"

/// The texts of a job's choices: text_of writes a text that parses to the same value.
/// Parsing throws InvalidArgument as values.h says.
namespace plimsoll::job {

/// Also true and false, as in fully_shard(reshard_after_forward=…).
Reshard parse_reshard(const std::string& what, std::string_view text);
std::string text_of(const Reshard& reshard);  ///< auto, always, never, or the number of ranks.

Wrap parse_wrap(const std::string& what, std::string_view text);
std::string text_of(const Wrap& wrap);  ///< blocks, blocks:K or root.

/// check() refuses blocks that the model does not have, and ranges that overlap.
Checkpoint parse_checkpoint(const std::string& what, std::string_view text);
/// none, full, selective, every:K, selective:every:K, or ranges: full@0-15+selective@16-23.
std::string text_of(const Checkpoint& checkpoint);

Dtype parse_dtype(const std::string& what, std::string_view text);
std::string text_of(Dtype dtype);

OptimizerImpl parse_optimizer_impl(const std::string& what, std::string_view text);
std::string text_of(OptimizerImpl impl);

OptimizerKind parse_optimizer(const std::string& what, std::string_view text);
std::string text_of(OptimizerKind kind);

Offload parse_offload(const std::string& what, std::string_view text);
std::string text_of(Offload offload);

Norm parse_norm(const std::string& what, std::string_view text);
std::string text_of(Norm norm);

}  // namespace plimsoll::job
