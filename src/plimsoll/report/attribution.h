#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/base/bytes.h"

/// Peak attribution: category, owner and cause of each live byte. Reports of `plan` and of `run` share these values.
namespace plimsoll::report {

struct CategoryBytes {
  std::string category;
  Bytes bytes = 0;
  bool operator==(const CategoryBytes&) const = default;
};

/// A module, a group of modules that are sharded together, or an optimizer, with its bytes at the peak.
struct ModuleRow {
  std::string name;  ///< The path below the root; "" for the root. Starts with a class if a job has several roots.
  std::string type;
  bool fsdp_unit = false;                   ///< fully_shard was applied to it.
  std::uint64_t parameters = 0;             ///< Of the module and all below it, before sharding.
  Bytes highest = 0;                        ///< The highest total of the device while the module ran.
  Bytes total = 0;                          ///< Bytes of the module and all below it at the peak.
  std::vector<CategoryBytes> at_peak = {};  ///< Sums to `total`.
};

/// The name of a job's only model, if a text needs one.
inline constexpr std::string_view kRootName = "the root";
/// The name of the owner of memory that belongs to no module and no optimizer.
inline constexpr std::string_view kNoModule = "no module";

/// Live bytes of one category with one reason. The causes of a peak sum to the peak. text/sections.h renders them.
struct PeakCause {
  Bytes bytes = 0;
  std::string category;
  std::string why;                                         ///< The reason in a few words, with user-facing paths.
  std::vector<std::pair<std::string, Bytes>> owners = {};  ///< Largest first. Modules, optimizers, or kNoModule.
  std::uint64_t allocations = 0;
  bool one_per_shard = false;  ///< Temporaries of an optimizer's step: one allocation for each shard.
  bool operator==(const PeakCause&) const = default;
};

/// What the peak of one device consists of.
struct Attribution {
  std::vector<CategoryBytes> categories;  ///< Largest first.
  std::string module;                     ///< The module that ran at the peak; "" for the root and for none.
  std::string stage;
  std::vector<ModuleRow> modules;  ///< In natural order, parents before children; then groups, then optimizers.
  std::vector<PeakCause> causes;   ///< Largest first.
};

}  // namespace plimsoll::report
