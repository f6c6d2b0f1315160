#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace plimsoll::report {

/// The characters of UTF-8 in `text`.
std::size_t width_of(const std::string& text);

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

/// Rows of text in aligned columns, two blanks apart, a line under the titles:
///
///     book       peak
///     ------  -------
///     active  1.00 GiB
///
/// Widths are counted in characters of UTF-8. The last column is never padded, so no line ends with blanks.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  /// Missing cells are empty.
  /// REQUIRES: cells.size() <= number of columns.
  void add(std::vector<std::string> cells);

  bool empty() const { return rows_.empty(); }

  /// Each line starts with `indent` and ends with a line feed.
  std::string render(const std::string& indent = "  ") const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Whether text for a terminal may carry colour.
enum class Colour { kNever, kAlways };

enum class Ink { kGood, kBad, kWarning, kFaint };

/// `text` in that ink, or as it is where colour is not wanted.
std::string paint(const std::string& text, Ink ink, Colour colour);

}  // namespace plimsoll::report
