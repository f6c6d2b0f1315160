#pragma once

#include <span>
#include <string>
#include <string_view>

#include "plimsoll/job/job.h"

/// How the choices of a job are written: each is read from text and written as text that is read back as itself.
/// Reading throws InvalidArgument as values.h says.
namespace plimsoll::job {

Reshard parse_reshard(const std::string& what, std::string_view text);
std::string text_of(const Reshard& reshard);  ///< auto, always, never, or the number of ranks.

Wrap parse_wrap(const std::string& what, std::string_view text);
std::string text_of(const Wrap& wrap);  ///< blocks, blocks:K or root.

/// Of blocks that are not in the model, and of ranges that overlap, check() complains.
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
