#include "plimsoll/job/toml_scanner.h"

#include "plimsoll/base/errors.h"
#include "plimsoll/job/toml_number.h"
#include "plimsoll/job/values.h"

namespace plimsoll::job::toml {
namespace {

bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/// Not allowed in strings and comments; tabs are, line ends are looked at apart.
bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

/// How many bytes the character at the front has, 0 where it is no UTF-8.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t index = 1; index < length; ++index) {
    if ((byte(index) & 0xC0) != 0x80) return 0;
  }
  // Longer than needed, a surrogate, or beyond Unicode.
  const unsigned second = byte(1);
  const bool wrong = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second >= 0xA0) ||
                     (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second >= 0x90);
  return wrong ? 0 : length;
}

}  // namespace

Scanner::Scanner(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {
  if (text.size() > kMostBytes) {
    throw FormatError(origin + ": is larger than " + std::to_string(kMostBytes >> 20) + " MiB: no configuration is");
  }
  take("\xEF\xBB\xBF");
  const std::size_t begin = at_;
  while (!at_end()) {
    const std::size_t length = utf8_length(text_.substr(at_));
    if (length == 0) fail("not UTF-8, as TOML must be");
    if (text_[at_] == '\n') ++line_;
    at_ += length;
  }
  at_ = begin;
  line_ = 1;
}

void Scanner::fail(const std::string& message) const {
  throw FormatError(origin_ + ":" + std::to_string(line_) + ": " + message);
}

bool Scanner::take(std::string_view what) {
  if (!starts_with(what)) return false;
  at_ += what.size();
  return true;
}

void Scanner::expect(std::string_view what, const char* where) {
  if (take(what)) return;
  const std::size_t end = text_.find('\n', at_);
  fail("expected '" + std::string(what) + "' " + where + ", found " +
       (at_end()         ? "the end of the file"
        : peek() == '\n' ? "the end of the line"
                         : in_quotes(text_.substr(at_, end - at_))));
}

void Scanner::skip_blanks() {
  while (peek() == ' ' || peek() == '\t') ++at_;
}

bool Scanner::take_line_end() {
  if (!take("\n") && !take("\r\n")) return false;
  ++line_;
  return true;
}

void Scanner::skip_comment() {
  if (peek() != '#') return;
  while (!at_end() && peek() != '\n' && !starts_with("\r\n")) {
    if (is_control(peek())) fail("a control character in a comment");
    ++at_;
  }
}

void Scanner::skip_empty_lines() {
  do {
    skip_blanks();
    skip_comment();
  } while (take_line_end());
}

void Scanner::end_line() {
  skip_blanks();
  skip_comment();
  if (!at_end() && !take_line_end()) {
    fail("expected the end of the line, found " + in_quotes(text_.substr(at_, text_.find('\n', at_) - at_)));
  }
}

std::vector<std::string> Scanner::key() {
  std::vector<std::string> parts;
  do {
    skip_blanks();
    if (starts_with("\"\"\"") || starts_with("'''")) fail("a key cannot be a string of several lines");
    if (peek() == '"' || peek() == '\'') {
      parts.push_back(string());
    } else {
      const std::size_t begin = at_;
      while (is_bare(peek())) ++at_;
      if (at_ == begin)
        fail("expected a key, found " +
             (at_end() ? "the end of the file" : in_quotes(text_.substr(at_, utf8_length(text_.substr(at_))))));
      parts.emplace_back(text_.substr(begin, at_ - begin));
    }
    if (parts.size() > static_cast<std::size_t>(kDeepest)) {
      fail("nested deeper than " + std::to_string(kDeepest) + " levels");
    }
    skip_blanks();
  } while (take("."));
  return parts;
}

std::string Scanner::string() {
  if (take("\"\"\"")) return basic(true);
  if (take("'''")) return literal(true);
  if (take("\"")) return basic(false);
  take("'");
  return literal(false);
}

/// Takes the closing quotes where they are next. Of several lines, up to two quotes before them belong to the string.
bool Scanner::close(std::string& into, char quote, bool many_lines) {
  if (!many_lines) return take(std::string_view(&quote, 1));
  std::size_t quotes = 0;
  while (quotes < 5 && peek(quotes) == quote) ++quotes;
  at_ += quotes;
  into.append(quotes >= 3 ? quotes - 3 : quotes, quote);
  return quotes >= 3;
}

std::string Scanner::basic(bool many_lines) {
  std::string result;
  if (many_lines) take_line_end();
  while (true) {
    if (at_end()) fail("a string is not closed");
    if (peek() == '"') {
      if (close(result, '"', many_lines)) return result;
    } else if (take("\\")) {
      escape(result, many_lines);
    } else if (peek() == '\n' || starts_with("\r\n")) {
      if (!many_lines) fail("a string is not closed on its line");
      take_line_end();
      result += '\n';
    } else {
      if (is_control(peek())) fail("a control character in a string: write it as \\u0000");
      result += text_[at_++];
    }
  }
}

std::string Scanner::literal(bool many_lines) {
  std::string result;
  if (many_lines) take_line_end();
  while (true) {
    if (at_end()) fail("a string is not closed");
    if (peek() == '\'') {
      if (close(result, '\'', many_lines)) return result;
    } else if (peek() == '\n' || starts_with("\r\n")) {
      if (!many_lines) fail("a string is not closed on its line");
      take_line_end();
      result += '\n';
    } else {
      if (is_control(peek())) fail("a control character in a string");
      result += text_[at_++];
    }
  }
}

void Scanner::escape(std::string& into, bool many_lines) {
  constexpr std::string_view kLetters = "btnfr\"\\";
  constexpr std::string_view kMeanings = "\b\t\n\f\r\"\\";
  const std::size_t letter = at_end() ? std::string_view::npos : kLetters.find(peek());
  if (letter != std::string_view::npos) {
    ++at_;
    into += kMeanings[letter];
  } else if (take("u")) {
    put_unicode(into, 4);
  } else if (take("U")) {
    put_unicode(into, 8);
  } else {
    // A backslash at a line's end joins the next line that is not empty.
    skip_blanks();
    if (!many_lines || !take_line_end()) fail("an unknown escape in a string: a backslash itself is written \\\\");
    do {
      skip_blanks();
    } while (take_line_end());
  }
}

void Scanner::put_unicode(std::string& into, int digits) {
  std::uint32_t code = 0;
  for (int index = 0; index < digits; ++index) {
    const int digit = digit_value(peek());
    if (digit < 0 || digit > 15) fail("expected " + std::to_string(digits) + " hexadecimal digits after \\u or \\U");
    code = code * 16 + static_cast<std::uint32_t>(digit);
    ++at_;
  }
  if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) fail("an escape that is no character of Unicode");
  const auto put = [&](std::uint32_t byte) { into += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

std::string Scanner::word() {
  const std::size_t begin = at_;
  while (is_bare(peek()) || peek() == '+' || peek() == '.' || peek() == ':') ++at_;
  // A date and a time may have a space between.
  if (looks_like_date(text_.substr(begin, at_ - begin)) && peek() == ' ' && digit_value(peek(1)) < 10 &&
      digit_value(peek(1)) >= 0 && peek(3) == ':') {
    ++at_;
    while (is_bare(peek()) || peek() == '+' || peek() == '.' || peek() == ':') ++at_;
  }
  return std::string(text_.substr(begin, at_ - begin));
}

Value Scanner::scalar() {
  Value value;
  value.line = line_;
  const std::string text = word();
  if (text.empty()) {
    fail("expected a value, found " + (at_end() ? "the end of the file"
                                       : peek() == '\n'
                                           ? "the end of the line"
                                           : in_quotes(text_.substr(at_, utf8_length(text_.substr(at_))))));
  }
  if (const std::string wrong = read_scalar(text, value); !wrong.empty()) fail(wrong);
  return value;
}

}  // namespace plimsoll::job::toml
