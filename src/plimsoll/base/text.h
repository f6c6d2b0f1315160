#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Texts that users write, and texts in messages.
namespace plimsoll {

/// In lower case; ASCII only, in every locale.
std::string lower(std::string_view text);

/// `text` for a message: in quotes, cut after `most` bytes, without control characters.
std::string in_quotes(std::string_view text, std::size_t most = 60);

/// The first `most` + 1 bytes of a file. `kind` ("TOML file") and `contents` are for messages.
/// Throws InvalidArgument for a folder and for a file that cannot be read.
std::string read_file(const std::filesystem::path& file, std::size_t most, const std::string& kind,
                      const std::string& contents);

/// Whether `a` comes before `b` in natural order: numbers by value ("layers.2" before "layers.10"), letters without
/// case, and a module directly before its children.
bool natural_less(std::string_view a, std::string_view b);

/// The order of a container: natural, and by bytes between names that differ only in case or in leading zeros.
struct NaturalOrder {
  bool operator()(std::string_view a, std::string_view b) const {
    return natural_less(a, b) || (a < b && !natural_less(b, a));
  }
};

/// At most `most` candidates that `word` may mean: those that begin with `word` ("H100"), in the given order; else
/// those with the fewest edits (insertions, deletions, replacements), at most a third of its letters or 2; else the
/// longest candidate with which `word` begins. Case does not matter. Fast for words of any length.
std::vector<std::string> nearest(std::string_view word, std::span<const std::string> candidates, std::size_t most);

/// "did you mean A or B?", or "" if no candidate is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates, std::size_t most = 3);

/// "line 1, column 25": the place of byte number `byte` (from 1) of `text`, for messages of parsers. Columns are bytes.
inline std::string line_and_column(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

}  // namespace plimsoll
