#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "plimsoll/ledger/ids.h"
#include "plimsoll/report/attribution.h"

namespace plimsoll::inline tracker {

/// The name that an explanation uses for an owner in the ledger: for users, the path below the root.
using OwnerNames = std::function<std::string(const std::string&)>;
inline std::string as_in_ledger(const std::string& owner) { return owner; }

/// Live bytes of one category with one reason. report::sentence() renders one.
using Cause = report::PeakCause;

/// The causes of the bytes of a device at one instant; they sum to the total.
struct Explanation {
  std::string device;
  std::int64_t total = 0;  ///< The causes' sum.
  std::int64_t reserved = 0;
  ledger::Step step = ledger::kNoStep;
  std::string phase;
  /// The FSDP module of the stage; "" for none.
  std::string module = {};
  std::string stage = {};
  std::vector<Cause> causes = {};  ///< Largest first.
};

/// A line with the instant, then a line for each cause.
std::string to_text(const Explanation& explanation);
std::ostream& operator<<(std::ostream& out, const Explanation& explanation);

}  // namespace plimsoll::inline tracker
