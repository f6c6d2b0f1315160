#pragma once

#include <cstddef>
#include <cstdint>

/// What the runtime takes memory for: whoever watches allocations learns it at the instant of the allocation.
namespace plimsoll::fsdp {

class FSDPParamGroup;

enum class MemoryUse : std::uint8_t {
  kShardedParam,
  kUnshardedParam,
  kAllGatherInput,    ///< Shards that are cast, or brought to the device, before they are gathered.
  kAllGatherOutput,   ///< Also what is copied in: it is a part of the same buffer.
  kAllGatherCopyOut,  ///< Gathered shards that are to be put side by side.
  kPostForwardShard,
  kUnshardedGrad,
  kAccumulatedGrad,  ///< An unsharded gradient that no backward has reduced yet.
  kReduceScatterInput,
  kReduceScatterOutput,
  kAllReduce,
  kPartialGrad,  ///< Reduced within a replica; a later backward reduces among them.
  kShardedGrad,
};
inline constexpr std::size_t kMemoryUses = static_cast<std::size_t>(MemoryUse::kShardedGrad) + 1;

/// The group whose work this thread does, until the end of the scope. Scopes nest.
class GroupScope {
 public:
  explicit GroupScope(const FSDPParamGroup& group);
  ~GroupScope();
  GroupScope(const GroupScope&) = delete;
  GroupScope& operator=(const GroupScope&) = delete;

  /// Null outside of all scopes.
  static const FSDPParamGroup* current();

 private:
  const FSDPParamGroup* outer_;
};

/// What this thread takes memory for on the group's device, until the end of the scope. Scopes nest.
class MemoryScope {
 public:
  explicit MemoryScope(MemoryUse use);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  /// Null outside of all scopes.
  static const MemoryUse* current();

 private:
  MemoryUse use_;
  const MemoryUse* outer_;
};

}  // namespace plimsoll::fsdp
