#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "plimsoll/base/bytes.h"
#include "plimsoll/job/job.h"

/// Values from the texts that a user types. Each function throws InvalidArgument that begins with `what` ("--batch")
/// and names the expected values, the text and, if there is one, the nearest value.
/// The texts of a job's choices: text_of writes a text that parses to the same value.
/// Parsing throws InvalidArgument as values.h says.
namespace plimsoll::job {

/// The largest count of a job: torch's counts are of 32 bits.
inline constexpr std::int64_t kMostOfAnything = std::numeric_limits<std::int32_t>::max();
/// More than any GPU has.
inline constexpr Bytes kMostMemory = Bytes{1} << 48;

/// "a, b or c"; `last` stands before the last word.
std::string listed(std::span<const std::string> words, const std::string& last = " or ");

/// Digits only: no sign, no exponent, no separators.
std::int64_t parse_whole(const std::string& what, std::string_view text, std::int64_t least,
                         std::int64_t most = kMostOfAnything);
/// Finite, above 0. `expected` describes it in the message.
double parse_positive(const std::string& what, std::string_view text, const std::string& expected = "a number above 0");
/// Whether parse_boolean reads `text`, which is not empty.
bool is_boolean(std::string_view text);
/// true, yes, on, 1, and their opposites. An empty text is true: a flag without a value.
bool parse_boolean(const std::string& what, std::string_view text);
/// From 1 to kMostMemory.
Bytes parse_memory(const std::string& what, std::string_view text);
/// The index of `text` in `words`; case does not matter. `expected` describes the words in the message ("": lists
/// them).
std::size_t parse_word(const std::string& what, std::string_view text, std::span<const std::string> words,
                       const std::string& expected = "");

/// The shortest text that parses to the same number.
std::string text_of(double number);
/// In the largest unit that divides the amount: "80GiB".
std::string text_of_memory(Bytes bytes);

/// Also true and false, as in fully_shard(reshard_after_forward=…).
Reshard parse_reshard(const std::string& what, std::string_view text);
std::string text_of(const Reshard& reshard);  ///< auto, always, never, or the number of ranks.

Wrap parse_wrap(const std::string& what, std::string_view text);
std::string text_of(const Wrap& wrap);  ///< blocks, blocks:K or root.

/// check() refuses blocks that the model does not have, and ranges that overlap.
Checkpoint parse_checkpoint(const std::string& what, std::string_view text);
/// none, full, selective, every:K, selective:every:K, or ranges: full@0-15+selective@16-23.
std::string text_of(const Checkpoint& checkpoint);

}  // namespace plimsoll::job
