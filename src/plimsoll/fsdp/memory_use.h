#pragma once

#include <cstddef>
#include <cstdint>

/// The runtime's reason for an allocation, known at the instant of the allocation.
namespace plimsoll::fsdp {

class FSDPParamGroup;

enum class MemoryUse : std::uint8_t {
  kShardedParam,
  kUnshardedParam,
  kAllGatherInput,    ///< Shards that are cast or copied to the device before the all-gather.
  kAllGatherOutput,   ///< Also the copy-in: it is a part of the same buffer.
  kAllGatherCopyOut,  ///< Gathered shards before they are joined.
  kPostForwardShard,
  kUnshardedGrad,
  kAccumulatedGrad,  ///< An unsharded gradient that is not reduced yet.
  kReduceScatterInput,
  kReduceScatterOutput,
  kAllReduce,
  kPartialGrad,  ///< Reduced within a replica; a later backward all-reduces it.
  kShardedGrad,
};
inline constexpr std::size_t kMemoryUses = static_cast<std::size_t>(MemoryUse::kShardedGrad) + 1;

/// The group that this thread works for, until the end of the scope. Scopes nest.
class GroupScope {
 public:
  explicit GroupScope(const FSDPParamGroup& group);
  ~GroupScope();
  GroupScope(const GroupScope&) = delete;
  GroupScope& operator=(const GroupScope&) = delete;

  /// Null outside all scopes.
  static const FSDPParamGroup* current();

 private:
  const FSDPParamGroup* outer_;
};

/// The use of memory that this thread allocates on the group's device, until the end of the scope. Scopes nest.
class MemoryScope {
 public:
  explicit MemoryScope(MemoryUse use);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  /// Null outside all scopes.
  static const MemoryUse* current();

 private:
  MemoryUse use_;
  const MemoryUse* outer_;
};

}  // namespace plimsoll::fsdp
