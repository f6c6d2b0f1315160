#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/job/toml.h"

namespace plimsoll::job::toml {

/// The letters of a TOML text: what is neither a table nor an array. Every function takes its part of the text from the
/// front, or throws FormatError with the line.
class Scanner {
 public:
  /// Throws FormatError for a text that is too long or no UTF-8. Both arguments must outlive the scanner.
  Scanner(std::string_view text, const std::string& origin);

  [[noreturn]] void fail(const std::string& message) const;

  int line() const { return line_; }
  bool at_end() const { return at_ >= text_.size(); }
  /// The next character; '\0' at the end.
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool starts_with(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  /// Takes `what` where it is next.
  bool take(std::string_view what);
  /// Throws where `what` is not next; `where` is for the message.
  void expect(std::string_view what, const char* where);

  void skip_blanks();       ///< Spaces and tabs.
  void skip_empty_lines();  ///< Blanks, comments and line ends.
  void end_line();          ///< What may follow a value: a comment, and the line's end.

  /// The parts of a key: one, or several with dots between.
  std::vector<std::string> key();
  std::string string();  ///< REQUIRES: a quote is next.
  /// A number, boolean or date.
  Value scalar();

 private:
  std::string basic(bool many_lines);
  std::string literal(bool many_lines);
  void escape(std::string& into, bool many_lines);
  void put_unicode(std::string& into, int digits);
  bool close(std::string& into, char quote, bool many_lines);
  void skip_comment();
  bool take_line_end();
  std::string word();

  std::string_view text_;
  const std::string& origin_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace plimsoll::job::toml
