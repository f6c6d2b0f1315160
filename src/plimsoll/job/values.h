#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "plimsoll/base/bytes.h"

/// Texts that people type into values. Every function throws InvalidArgument that begins with `what` ("--batch"), and
/// says what was expected, what was found and, where it can, what was probably meant.
namespace plimsoll::job {

/// No count of a job is larger: torch's own stop there.
inline constexpr std::int64_t kMostOfAnything = std::numeric_limits<std::int32_t>::max();
/// No card has more memory.
inline constexpr Bytes kMostMemory = Bytes{1} << 48;

/// `text` for a message: quoted, cut, and without what a terminal would take for orders.
std::string in_quotes(std::string_view text);
/// Of ASCII only, whatever the locale.
std::string lower(std::string_view text);
/// "a, b or c"; `last` stands before the last word.
std::string listed(std::span<const std::string> words, const std::string& last = " or ");

/// Digits only: no sign, no exponent, no separators.
std::int64_t parse_whole(const std::string& what, std::string_view text, std::int64_t least,
                         std::int64_t most = kMostOfAnything);
/// Finite, above 0.
double parse_positive(const std::string& what, std::string_view text);
/// Whether parse_boolean reads `text`, which is not empty.
bool is_boolean(std::string_view text);
/// true, yes, on, 1, and their opposites. An empty text is true: a flag without a value.
bool parse_boolean(const std::string& what, std::string_view text);
/// From 1 to kMostMemory.
Bytes parse_memory(const std::string& what, std::string_view text);
/// Where `text` is in `words`; case does not matter. `expected` describes them in the message, "" for the words.
std::size_t parse_word(const std::string& what, std::string_view text, std::span<const std::string> words,
                       const std::string& expected = "");

/// The shortest text that is read back as the same number.
std::string text_of(double number);
/// In the largest unit that divides it: "80GiB".
std::string text_of_memory(Bytes bytes);

}  // namespace plimsoll::job
