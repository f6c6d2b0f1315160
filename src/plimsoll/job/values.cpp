#include "plimsoll/job/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "plimsoll/base/errors.h"
#include "plimsoll/base/text.h"

namespace plimsoll::job {
namespace {

using Words = std::vector<std::string>;

const Words kBooleans = {"true", "false", "yes", "no", "on", "off", "1", "0"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The reason for which `text` is not a whole number of the range.
std::string whole_hint(std::string_view text, std::int64_t least) {
  if (text.empty()) return "";
  if (std::all_of(text.begin(), text.end(), is_digit)) {
    const std::size_t first = std::min(text.find_first_not_of('0'), text.size() - 1);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data() + first, text.data() + text.size(), number);
    return error == std::errc() && number < least ? ": that is too small" : ": that is too large";
  }
  if (text[0] == '-' && text.size() > 1 && std::all_of(text.begin() + 1, text.end(), is_digit)) {
    return ": that is too small";
  }
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && is_digit(text[0]) && std::isfinite(number)) {
    if (number == std::floor(number) && number < 1e15) {
      return ": write all digits, as in " + std::to_string(static_cast<std::int64_t>(number));
    }
    return ": it must be whole";
  }
  return "";
}

/// Whether `text` is an amount of memory that only has too many digits.
bool is_large_amount(std::string_view text) {
  const std::size_t unit = std::min(text.find_first_not_of("0123456789"), text.size());
  if (unit == 0) return false;
  try {
    parse_bytes("1" + std::string(text.substr(unit)));
    return true;
  } catch (const InvalidArgument&) {
    return false;
  }
}

const Words kReshards = {"auto", "always", "never", "true", "false"};
const Words kCheckpointKinds = {"none", "full", "selective"};

constexpr const char* kReshardForms = "auto, always, never or a number of ranks";
constexpr const char* kWrapForms = "blocks, blocks:K or root";
constexpr const char* kCheckpointForms =
    "none, full, selective, every:K, selective:every:K or ranges as in full@0-15+selective@16-23";

const std::string& word_of(CheckpointKind kind) { return kCheckpointKinds.at(static_cast<std::size_t>(kind)); }

CheckpointKind parse_kind(const std::string& what, std::string_view text) {
  return static_cast<CheckpointKind>(parse_word(what, text, kCheckpointKinds, kCheckpointForms));
}

Checkpoint::Range parse_range(const std::string& what, std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) {
    throw InvalidArgument(what + " expects ranges of blocks as in full@0-15+selective@16-23, found " + in_quotes(text));
  }
  Checkpoint::Range range{.kind = parse_kind(what, text.substr(0, at))};
  const std::string_view blocks = text.substr(at + 1);
  const std::size_t dash = blocks.find('-');
  range.first = parse_whole(what, blocks.substr(0, dash), 0);
  range.last = dash == std::string_view::npos ? range.first : parse_whole(what, blocks.substr(dash + 1), 0);
  if (range.last < range.first) {
    throw InvalidArgument(what + " expects the first block of a range before its last, found " + in_quotes(text));
  }
  return range;
}

}  // namespace

std::string listed(std::span<const std::string> words, const std::string& last) {
  std::string text;
  for (std::size_t index = 0; index < words.size(); ++index) {
    if (index > 0) text += index + 1 == words.size() ? last : ", ";
    text += words[index];
  }
  return text;
}

std::int64_t parse_whole(const std::string& what, std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size() && is_digit(text[0]);
  if (!is_whole || number < least || number > most) {
    throw InvalidArgument(what + " expects a whole number from " + std::to_string(least) + " to " +
                          std::to_string(most) + ", found " + in_quotes(text) + whole_hint(text, least));
  }
  return number;
}

double parse_positive(const std::string& what, std::string_view text, const std::string& expected) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number) || !(number > 0)) {
    throw InvalidArgument(what + " expects " + expected + ", found " + in_quotes(text));
  }
  return number;
}

bool is_boolean(std::string_view text) {
  return std::find(kBooleans.begin(), kBooleans.end(), lower(text)) != kBooleans.end();
}

bool parse_boolean(const std::string& what, std::string_view text) {
  return text.empty() || parse_word(what, text, kBooleans, "true or false") % 2 == 0;
}

Bytes parse_memory(const std::string& what, std::string_view text) {
  Bytes bytes = 0;
  try {
    bytes = parse_bytes(text);
  } catch (const InvalidArgument&) {  // Its message quotes the whole text, which may be long.
    if (is_large_amount(text)) bytes = kMostMemory + 1;
    if (bytes == 0)
      throw InvalidArgument(what + " expects an amount of memory, found " + in_quotes(text) +
                            ": write a number and a unit, as in 80GiB, 24GB or 1073741824");
  }
  if (bytes == 0 || bytes > kMostMemory) {
    throw InvalidArgument(what + " expects an amount of memory above 0 and at most " + text_of_memory(kMostMemory) +
                          ", found " + in_quotes(text));
  }
  return bytes;
}

std::size_t parse_word(const std::string& what, std::string_view text, std::span<const std::string> words,
                       const std::string& expected) {
  const auto found = std::find(words.begin(), words.end(), lower(text));
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  const std::string meant = did_you_mean(text, words);
  throw InvalidArgument(what + " expects " + (expected.empty() ? listed(words) : expected) + ", found " +
                        in_quotes(text) + (meant.empty() ? "" : ": " + meant));
}

std::string text_of(double number) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number);
  return {text.data(), end};
}

std::string text_of_memory(Bytes bytes) {
  constexpr std::array<const char*, 5> kUnits{"", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes > 0 && bytes % 1024 == 0 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + kUnits[unit];
}

Reshard parse_reshard(const std::string& what, std::string_view text) {
  if (!text.empty() && is_digit(text[0])) return {Reshard::Kind::kToMesh, parse_whole(what, text, 2)};
  const std::size_t word = parse_word(what, text, kReshards, kReshardForms);
  return {static_cast<Reshard::Kind>(word > 2 ? word - 2 : word), 0};
}

std::string text_of(const Reshard& reshard) {
  if (reshard.kind == Reshard::Kind::kToMesh) return std::to_string(reshard.ranks);
  return kReshards.at(static_cast<std::size_t>(reshard.kind));
}

Wrap parse_wrap(const std::string& what, std::string_view text) {
  constexpr std::string_view kPrefix = "blocks:";
  if (lower(text.substr(0, kPrefix.size())) == kPrefix) return {parse_whole(what, text.substr(kPrefix.size()), 1)};
  static const Words kKinds = {"root", "blocks"};
  return {static_cast<std::int64_t>(parse_word(what, text, kKinds, kWrapForms))};
}

std::string text_of(const Wrap& wrap) {
  if (wrap.blocks == 0) return "root";
  return wrap.blocks == 1 ? "blocks" : "blocks:" + std::to_string(wrap.blocks);
}

Checkpoint parse_checkpoint(const std::string& what, std::string_view text) {
  Checkpoint checkpoint;
  if (text.find('@') != std::string_view::npos) {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find('+', begin), text.size());
      checkpoint.ranges.push_back(parse_range(what, text.substr(begin, end - begin)));
      begin = end + 1;
    }
    return checkpoint;
  }
  constexpr std::string_view kEvery = "every:";
  const std::string word = lower(text);
  const std::size_t every = word.find(kEvery);
  if (every == std::string::npos) {
    checkpoint.kind = parse_kind(what, text);
    return checkpoint;
  }
  checkpoint.every = parse_whole(what, text.substr(every + kEvery.size()), 1);
  if (every == 0) {
    checkpoint.kind = CheckpointKind::kFull;
  } else if (word[every - 1] == ':') {
    checkpoint.kind = parse_kind(what, text.substr(0, every - 1));
  }
  if (checkpoint.kind == CheckpointKind::kNone) {
    throw InvalidArgument(what + " expects " + kCheckpointForms + ", found " + in_quotes(text));
  }
  return checkpoint;
}

std::string text_of(const Checkpoint& checkpoint) {
  std::string text;
  for (const auto& range : checkpoint.ranges) {
    text += (text.empty() ? "" : "+") + word_of(range.kind) + "@" + std::to_string(range.first) + "-" +
            std::to_string(range.last);
  }
  if (!text.empty()) return text;
  if (checkpoint.every <= 1 || checkpoint.kind == CheckpointKind::kNone) {
    return word_of(checkpoint.kind);
  }
  const std::string every = "every:" + std::to_string(checkpoint.every);
  return checkpoint.kind == CheckpointKind::kFull ? every : word_of(checkpoint.kind) + ":" + every;
}

}  // namespace plimsoll::job
