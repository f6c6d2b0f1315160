#pragma once

#include <array>
#include <string_view>

#include "plimsoll/base/categories.h"
#include "plimsoll/fsdp/memory_use.h"

/// The category of each fsdp::MemoryUse.
namespace plimsoll::inline tracker::fsdp_categories {

inline constexpr auto kOfUse = std::to_array<std::string_view>(
    {category::kShardedParam.name, category::kUnshardedParam.name, category::kAllGatherInput.name,
     category::kAllGather.name, category::kAllGatherCopyOut.name, category::kPostForwardShard.name,
     category::kUnshardedGrad.name, category::kAccumulatedGrad.name, category::kReduceScatter.name,
     category::kReduceScatterOutput.name, category::kAllReduce.name, category::kPartialGrad.name,
     category::kShardedGrad.name});
static_assert(kOfUse.size() == fsdp::kMemoryUses && kOfUse.back() == category::kShardedGrad.name);

}  // namespace plimsoll::inline tracker::fsdp_categories
