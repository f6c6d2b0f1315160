#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "plimsoll/base/categories.h"

/// The names of things in the ledger: small integers that cannot be mistaken for each other.

namespace plimsoll::ledger {

/// One allocation. The caller chooses the id; no two allocations in the life of a ledger share one.
enum class AllocationId : std::uint64_t {};
/// A device, numbered in the order of naming: Ledger::device("cuda:0").
enum class DeviceId : std::uint16_t {};
/// The use of an allocation. The built-in categories (below) come first, then the user's: Ledger::category("KV cache").
enum class CategoryId : std::uint8_t {};
/// The module path that an allocation belongs to: Ledger::owner("layers.0.attention"). 0 is no owner, with the path "".
enum class OwnerId : std::uint32_t {};
/// A part of a step. The built-in phases (below) come first, then the user's: Ledger::phase_named("validation").
enum class PhaseId : std::uint8_t {};
/// The stream of an allocation, in the device's own numbers.
enum class StreamId : std::int64_t {};
/// The number of an event, from 1; 0 is the instant before the first event.
enum class Sequence : std::uint64_t {};

/// The plain number of an id.
template <typename Id>
  requires std::is_enum_v<Id>
constexpr std::underlying_type_t<Id> value(Id id) {
  return static_cast<std::underlying_type_t<Id>>(id);
}

inline constexpr std::size_t kMaxDevices = 64;
inline constexpr std::size_t kMaxCategories = 64;
inline constexpr std::size_t kMaxPhases = 64;
/// One more open module is a defect: modules are entered but not left.
inline constexpr std::size_t kMaxOpenModules = 4096;

inline constexpr OwnerId kNoOwner{0};

/// Steps are numbered from 0; kNoStep is the time before the first step.
using Step = std::int64_t;
inline constexpr Step kNoStep = -1;

/// The categories that each ledger starts with: those of torch's MemTracker and `Workspace`, in the order of their ids.
namespace categories {
inline constexpr CategoryId kParameter{0};
inline constexpr CategoryId kBuffer{1};
inline constexpr CategoryId kGradient{2};
inline constexpr CategoryId kActivation{3};
inline constexpr CategoryId kTemp{4};
inline constexpr CategoryId kOptstate{5};
inline constexpr CategoryId kOther{6};
inline constexpr CategoryId kWorkspace{7};
inline constexpr std::string_view kNames[] = {
    name_in_mem_tracker(category::kParameter), name_in_mem_tracker(category::kBuffer),
    name_in_mem_tracker(category::kGradient),  name_in_mem_tracker(category::kActivation),
    name_in_mem_tracker(category::kTemp),      name_in_mem_tracker(category::kOptState),
    name_in_mem_tracker(category::kOther),     name_in_mem_tracker(category::kWorkspace)};
}  // namespace categories

/// A ledger starts in kOther.
namespace phases {
inline constexpr PhaseId kForward{0};
inline constexpr PhaseId kBackward{1};
inline constexpr PhaseId kOptimizer{2};
inline constexpr PhaseId kOther{3};
inline constexpr std::string_view kNames[] = {"forward", "backward", "optimizer", "other"};
}  // namespace phases

/// The state of a module within a step, in torch's words.
enum class ModuleState : std::uint8_t {
  kPreForward,
  kPostForward,
  kPeakForward,
  kPreBackward,
  kPostBackward,
  kPeakBackward,
  kPreForwardAC,
  kPostForwardAC,
};
inline constexpr std::string_view kModuleStateNames[] = {"Pre-Forward",    "Post-Forward",   "Peak-Forward",
                                                         "Pre-Backward",   "Post-Backward",  "Peak-Backward",
                                                         "Pre-Forward-AC", "Post-Forward-AC"};
constexpr std::string_view name(ModuleState state) { return kModuleStateNames[value(state)]; }

}  // namespace plimsoll::ledger
