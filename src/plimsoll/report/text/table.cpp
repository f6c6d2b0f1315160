#include "plimsoll/report/text/table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "plimsoll/base/errors.h"

namespace plimsoll::report {
namespace {

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::size_t used = width_of(text);
  const std::string blanks(width > used ? width - used : 0, ' ');
  return align == Align::kRight ? blanks + text : text + blanks;
}

}  // namespace

// Continuation bytes of UTF-8 begin with the bits 10.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<std::string> cells) {
  if (cells.size() > columns_.size()) throw InternalError("a table's row has more cells than the table has columns");
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::render(const std::string& indent) const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(width_of(column.title));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  const auto line = [&](const auto& cell_at) {
    std::string built = indent;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      built += (i == 0 ? "" : "  ") + padded(cell_at(i), widths[i], columns_[i].align);
    }
    built.erase(built.find_last_not_of(' ') + 1);
    text += built + "\n";
  };
  line([&](std::size_t i) { return columns_[i].title; });
  line([&](std::size_t i) { return std::string(widths[i], '-'); });
  for (const auto& row : rows_) line([&](std::size_t i) { return row[i]; });
  return text;
}

std::string paint(const std::string& text, Ink ink, Colour colour) {
  if (colour == Colour::kNever) return text;
  constexpr std::array kCodes{"\x1b[1;32m", "\x1b[1;31m", "\x1b[33m", "\x1b[2m"};  // in the order of Ink
  return kCodes.at(static_cast<std::size_t>(ink)) + text + "\x1b[0m";
}

}  // namespace plimsoll::report
