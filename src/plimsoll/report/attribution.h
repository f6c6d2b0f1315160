#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/bytes.h"

/// Whose the memory of a peak was: the values that reports of `plan` and of `run` share.
namespace plimsoll::report {

struct CategoryBytes {
  std::string category;
  Bytes bytes = 0;
  bool operator==(const CategoryBytes&) const = default;
};

/// A module, or what belongs to none (an optimizer), with what it had at the peak.
struct ModuleRow {
  std::string name;  ///< The path from the root; "" for the root itself. Begins with a class where roots are several.
  std::string type;
  bool fsdp_unit = false;                   ///< fully_shard was applied to it.
  std::uint64_t parameters = 0;             ///< Of it and all below, before sharding.
  Bytes highest = 0;                        ///< The highest total while it ran, forward or backward.
  Bytes total = 0;                          ///< What it and all below had at the peak.
  std::vector<CategoryBytes> at_peak = {};  ///< Sums to `total`.
};

/// Why memory was there at the peak.
struct PeakCause {
  Bytes bytes = 0;
  std::string category;
  std::string why;
  std::string sentence;  ///< All of it, as a person reads it.
  std::vector<std::pair<std::string, Bytes>> owners = {};
};

}  // namespace plimsoll::report
