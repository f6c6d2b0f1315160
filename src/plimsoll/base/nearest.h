#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

/// The candidates that `word` may have meant, at most `most`: those that it begins ("H100"), in the order given; else
/// those with the fewest edits (insertions, deletions, replacements), where they are few for a word of its length.
/// Case does not matter. Cheap for words of any length.
std::vector<std::string> nearest(std::string_view word, std::span<const std::string> candidates, std::size_t most);

/// "did you mean A or B?", or "" where nothing is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates, std::size_t most = 3);

}  // namespace plimsoll
