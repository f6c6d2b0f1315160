#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/report/attribution.h"

/// Rows of modules made by hand, for reports of plans and of runs.
namespace sample {

using namespace plimsoll::literals;
using namespace plimsoll::report;

/// Its total is the sum of `at_peak`.
inline ModuleRow module(std::string name, std::string type, std::uint64_t parameters, plimsoll::Bytes highest,
                        std::vector<CategoryBytes> at_peak, bool fsdp_unit = false) {
  ModuleRow made{std::move(name), std::move(type), fsdp_unit, parameters, highest, 0, std::move(at_peak)};
  for (const CategoryBytes& entry : made.at_peak) made.total += entry.bytes;
  return made;
}

}  // namespace sample
