#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

/// At most `most` candidates that `word` may mean: those that begin with `word` ("H100"), in the given order; else
/// those with the fewest edits (insertions, deletions, replacements), at most a third of its letters or 2; else the
/// longest candidate with which `word` begins. Case does not matter. Fast for words of any length.
std::vector<std::string> nearest(std::string_view word, std::span<const std::string> candidates, std::size_t most);

/// "did you mean A or B?", or "" if no candidate is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates, std::size_t most = 3);

}  // namespace plimsoll
