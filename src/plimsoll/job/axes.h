#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/job/fields.h"
#include "plimsoll/job/job.h"

namespace plimsoll::job {

inline constexpr std::size_t kMostCombinations = 10'000;

/// A field and the values that a sweep gives it.
struct Axis {
  const Field* field = nullptr;
  std::vector<std::string> values = {};  ///< As Field::get writes them; none twice.
};

/// Values are separated by commas, or by semicolons where there are any: "none,selective,full". Whole numbers may be
/// ranges too: "1..8", or "1..64*2" for each twice the one before. --alloc-conf has commas of its own, and is split at
/// semicolons only.
/// Throws InvalidArgument that names the field for values it does not take, a range that is empty, a value that is
/// there twice, and more than kMostCombinations.
Axis parse_axis(std::string_view field, std::string_view text);

/// `base` with each value of each axis, the last axis fastest; `base` itself where there are no axes.
/// Throws InvalidArgument for two axes of one field, and for more than kMostCombinations.
std::vector<Job> combinations(const Job& base, std::span<const Axis> axes);

}  // namespace plimsoll::job
