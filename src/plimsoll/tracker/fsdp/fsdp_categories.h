#pragma once

#include <array>
#include <string_view>

#include "plimsoll/fsdp/memory_use.h"

/// The categories of FSDPMemTracker that MemTracker has not; torch's names where torch has them.
namespace plimsoll::fsdp_categories {

inline constexpr std::string_view kShardedParam = "Sharded Param";
inline constexpr std::string_view kUnshardedParam = "Unsharded Param";
inline constexpr std::string_view kAllGatherInput = "All Gather Input";
inline constexpr std::string_view kAllGather = "All Gather";
inline constexpr std::string_view kAllGatherCopyOut = "All Gather Copy-Out";
inline constexpr std::string_view kPostForwardShard = "Post-Forward Shard";
inline constexpr std::string_view kUnshardedGrad = "Unsharded Grad";
inline constexpr std::string_view kAccumulatedGrad = "Accumulated Grad";
inline constexpr std::string_view kReduceScatter = "Reduce Scatter";
inline constexpr std::string_view kReduceScatterOutput = "Reduce Scatter Output";
inline constexpr std::string_view kAllReduce = "All Reduce";
inline constexpr std::string_view kPartialGrad = "Partial Grad";
inline constexpr std::string_view kShardedGrad = "Sharded Grad";
inline constexpr std::string_view kOptState = "OptState";
inline constexpr std::string_view kInputs = "Inputs";

/// By fsdp::MemoryUse.
inline constexpr auto kOfUse = std::to_array<std::string_view>(
    {kShardedParam, kUnshardedParam, kAllGatherInput, kAllGather, kAllGatherCopyOut, kPostForwardShard, kUnshardedGrad,
     kAccumulatedGrad, kReduceScatter, kReduceScatterOutput, kAllReduce, kPartialGrad, kShardedGrad});
static_assert(kOfUse.size() == fsdp::kMemoryUses && kOfUse.back() == kShardedGrad);

}  // namespace plimsoll::fsdp_categories
