#include "plimsoll/base/text.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <utility>

#include "plimsoll/base/errors.h"

namespace plimsoll {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// A point separates a module from its children, so it comes before all else.
int rank_of(char c) { return c == '.' ? 0 : std::tolower(static_cast<unsigned char>(c)); }

/// Takes the digits at the front of `text`, without leading zeros.
std::string_view take_number(std::string_view& text) {
  const auto end = static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
  auto digits = text.substr(0, end);
  text.remove_prefix(end);
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  return digits;
}

/// The Levenshtein distance.
std::size_t edit_distance(const std::string& from, const std::string& to) {
  std::vector<std::size_t> row(to.size() + 1);
  for (std::size_t column = 0; column <= to.size(); ++column) row[column] = column;
  for (std::size_t line = 1; line <= from.size(); ++line) {
    std::size_t diagonal = std::exchange(row[0], line);
    for (std::size_t column = 1; column <= to.size(); ++column) {
      const std::size_t replaced = diagonal + (from[line - 1] == to[column - 1] ? 0 : 1);
      diagonal = row[column];
      row[column] = std::min({replaced, row[column] + 1, row[column - 1] + 1});
    }
  }
  return row[to.size()];
}

}  // namespace

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string in_quotes(std::string_view text, std::size_t most) {
  std::size_t length = std::min(text.size(), most);
  // Do not split a character of UTF-8.
  while (length > 0 && length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) --length;
  std::string shown = "'";
  for (const char c : text.substr(0, length)) shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  return shown + (length < text.size() ? "…'" : "'");
}

std::string read_file(const std::filesystem::path& file, std::size_t most, const std::string& kind,
                      const std::string& contents) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    throw InvalidArgument(file.string() + " is a folder: give the " + kind + " in it");
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    const std::string problem = std::filesystem::exists(file, error) ? "cannot read " : "no such file: ";
    throw InvalidArgument(problem + file.string() + ": expected " + contents);
  }
  std::string text(most + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (stream.bad()) throw InvalidArgument("cannot read " + file.string() + " to its end");
  return text;
}

bool natural_less(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const auto x = take_number(a), y = take_number(b);
      if (x != y) return x.size() != y.size() ? x.size() < y.size() : x < y;
    } else {
      if (rank_of(a.front()) != rank_of(b.front())) return rank_of(a.front()) < rank_of(b.front());
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.empty() && !b.empty();
}

std::vector<std::string> nearest(std::string_view word, std::span<const std::string> candidates, std::size_t most) {
  const std::string wanted = lower(word);
  std::vector<std::string> found;
  if (wanted.size() >= 2) {
    for (const std::string& candidate : candidates) {
      if (found.size() < most && lower(candidate).starts_with(wanted)) found.push_back(candidate);
    }
  }
  if (!found.empty()) return found;
  const std::size_t limit = std::max<std::size_t>(2, wanted.size() / 3);
  std::size_t best = limit;
  for (const std::string& candidate : candidates) {
    // The lengths alone exclude most candidates, and all of them for a hostile word.
    if (std::max(wanted.size(), candidate.size()) - std::min(wanted.size(), candidate.size()) > best) continue;
    const std::size_t distance = edit_distance(wanted, lower(candidate));
    // As many edits as letters: no part of the word is left.
    if (distance > best || distance >= candidate.size()) continue;
    if (distance < best) found.clear();
    best = distance;
    found.push_back(candidate);
  }
  if (found.empty()) {  // "batchsize" begins with "batch".
    for (const std::string& candidate : candidates) {
      const bool is_longer = found.empty() || candidate.size() > found[0].size();
      if (candidate.size() >= 3 && is_longer && wanted.starts_with(lower(candidate))) found = {candidate};
    }
  }
  std::sort(found.begin(), found.end());
  if (found.size() > most) found.resize(most);
  return found;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates, std::size_t most) {
  std::string text;
  for (const std::string& candidate : nearest(word, candidates, most)) {
    text += (text.empty() ? "did you mean " : " or ") + candidate;
  }
  return text.empty() ? text : text + "?";
}

}  // namespace plimsoll
