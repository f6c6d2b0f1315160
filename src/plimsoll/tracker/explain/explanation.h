#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "plimsoll/ledger/ids.h"
#include "plimsoll/report/attribution.h"

namespace plimsoll {

/// The name that an explanation uses for an owner in the ledger: for users, the path below the root.
using OwnerNames = std::function<std::string(const std::string&)>;
inline std::string as_in_ledger(const std::string& owner) { return owner; }

/// Live bytes of one category with one reason. report::sentence() renders one.
using Cause = report::PeakCause;

/// Where the memory of a device stood at one instant, cause by cause; from what was alive then, to the byte.
struct Explanation {
  std::string device;
  std::int64_t total = 0;  ///< The causes' sum.
  std::int64_t reserved = 0;
  ledger::Step step = ledger::kNoStep;
  std::string phase;
  /// The FSDP module whose stage it was; "" for none.
  std::string module;
  std::string stage;
  std::vector<Cause> causes;  ///< Largest first.
};

/// A line that says when, and one for each cause.
std::string to_text(const Explanation& explanation);
std::ostream& operator<<(std::ostream& out, const Explanation& explanation);

}  // namespace plimsoll
