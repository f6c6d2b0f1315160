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

const std::vector<std::string> kBooleans = {"true", "false", "yes", "no", "on", "off", "1", "0"};

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

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::string shown(text.substr(0, kMost));
  // Drop a character that the cut split, so that valid UTF-8 stays valid.
  if (text.size() > kMost) {
    while (!shown.empty() && (static_cast<unsigned char>(shown.back()) & 0xC0) == 0x80) shown.pop_back();
    if (!shown.empty() && static_cast<unsigned char>(shown.back()) >= 0xC0) shown.pop_back();
  }
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return "'" + shown + (text.size() > kMost ? "…'" : "'");
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

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

}  // namespace plimsoll::job
