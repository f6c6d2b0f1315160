#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/ledger/ids.h"

namespace plimsoll {

/// One reason why memory was taken at an instant: what is alike in category and in why it is there.
struct Cause {
  std::int64_t bytes = 0;
  std::string category;
  /// Why, in a few words: "whole because its backward runs", "prefetched while layers.30 runs", "not resharded after
  /// forward".
  std::string why;
  /// Whose, with their bytes, largest first: FSDP modules, the optimizer's class, or "no module".
  std::vector<std::pair<std::string, std::int64_t>> owners;
  /// All of it, with the amount.
  std::string sentence;
};

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
