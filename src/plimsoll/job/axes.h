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
  std::vector<std::string> values = {};  ///< As Field::get writes them, each once.
};

/// Values are separated by commas, or by semicolons if the text has any: "none,selective,full". Whole numbers may be
/// ranges: "1..8", or "1..64*2" (doubling). Values of --alloc-conf contain commas, so only semicolons separate them.
/// Throws InvalidArgument with the field for a wrong value, an empty range, a value that is given twice, and more than
/// kMostCombinations values.
Axis parse_axis(std::string_view field, std::string_view text);

/// `base` with each value of each axis, the last axis fastest; only `base` if there are no axes.
/// Throws InvalidArgument for two axes of one field, and for more than kMostCombinations.
std::vector<Job> combinations(const Job& base, std::span<const Axis> axes);

}  // namespace plimsoll::job
