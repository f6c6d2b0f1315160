#include "plimsoll/report/text/amounts.h"

#include <algorithm>
#include <cstdio>

#include "plimsoll/report/text/table.h"

namespace plimsoll::report {
std::string Amounts::operator()(Bytes bytes) const { return unit_ ? format_bytes(bytes, *unit_) : format_bytes(bytes); }

std::string Amounts::change(Bytes before, Bytes after) const {
  if (before == after) return "0 B";
  return before < after ? "+" + (*this)(after - before) : "-" + (*this)(before - after);
}

std::string decimal(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string share(Bytes part, Bytes whole) {
  return whole == 0 ? "" : decimal(100.0 * static_cast<double>(part) / static_cast<double>(whole), "%.1f %%");
}

std::string counted(std::uint64_t number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

std::string parameter_count(std::uint64_t parameters) {
  const auto value = static_cast<double>(parameters);
  if (value >= 1e12) return decimal(value / 1e12, "%.2f T");
  if (value >= 1e9) return decimal(value / 1e9, "%.2f B");
  if (value >= 1e6) return decimal(value / 1e6, "%.2f M");
  return std::to_string(parameters);
}

std::string moment(const std::optional<std::int64_t>& step, const std::string& phase, const std::string& outside) {
  const std::string when = step ? "step " + std::to_string(*step) : outside;
  return phase.empty() || (!step && phase == "other") ? when : when + ", " + phase;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string excerpt(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // not inside a character
  return text.substr(0, end) + "...";
}

std::string strip_control_chars(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

std::string wrapped(const std::string& text, std::size_t width, const std::string& indent) {
  std::string lines;
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && width_of(line) + 1 + width_of(word) > width) {
      lines += line + "\n";
      line = indent + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
    at = end + 1;
  }
  return lines + line;
}

}  // namespace plimsoll::report
