#include "plimsoll/report/text/folded_names.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace plimsoll::report {
namespace {

/// "layers.30" is {"layers.", 30}.
struct Numbered {
  std::string_view prefix;
  std::uint32_t number = 0;
};

std::optional<Numbered> numbered(std::string_view name) {
  const std::size_t point = name.rfind('.');
  const std::size_t start = point == std::string_view::npos ? 0 : point + 1;
  Numbered found{name.substr(0, start), 0};
  const auto [end, error] = std::from_chars(name.data() + start, name.data() + name.size(), found.number);
  if (start == name.size() || error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return found;
}

class Folding {
 public:
  explicit Folding(const std::vector<NamedRow>& rows) : rows_(rows) {}

  /// Folds the rows from `first` to `last`. `starts` are where the copies of that part begin; the first is at `first`.
  /// Of names, the first `written` characters are written as `label`.
  void fold(std::size_t first, std::size_t last, const std::vector<std::size_t>& starts, std::size_t written,
            const std::string& label) {
    for (std::size_t at = first; at < last;) {
      const std::size_t below = end_of(at, last);
      const std::size_t copies = copies_of(at, below, last);
      const std::size_t length = below - at;
      std::string name = label + rows_[at].name.substr(written);
      if (copies > 1) name += "-" + std::to_string(numbered(rows_[at].name)->number + copies - 1);
      std::vector<std::size_t> members;
      for (const std::size_t start : starts) {
        for (std::size_t copy = 0; copy < copies; ++copy) members.push_back(start + (at - first) + copy * length);
      }
      result.push_back({name, members});
      fold(at + 1, below, shifted(members), rows_[at].name.size(), name);
      at += copies * length;
    }
  }

  std::vector<FoldedRow> result;

 private:
  static std::vector<std::size_t> shifted(std::vector<std::size_t> starts) {
    for (std::size_t& start : starts) ++start;
    return starts;
  }

  /// Where what lies below the row `at` ends. The root, which has no name, is a row like any other.
  std::size_t end_of(std::size_t at, std::size_t last) const {
    const std::string& name = rows_[at].name;
    std::size_t end = at + 1;
    if (name.empty()) return end;
    while (end < last && rows_[end].name.starts_with(name + ".")) ++end;
    return end;
  }

  std::size_t copies_of(std::size_t at, std::size_t below, std::size_t last) const {
    const auto first = numbered(rows_[at].name);
    if (!first) return 1;
    std::size_t copies = 1;
    for (std::size_t next = below; next < last; next += below - at, ++copies) {
      const auto other = numbered(rows_[next].name);
      if (!other || other->prefix != first->prefix || other->number != first->number + copies) break;
      if (end_of(next, last) - next != below - at || !alike(at, next, below - at)) break;
    }
    return copies;
  }

  bool alike(std::size_t a, std::size_t b, std::size_t length) const {
    const std::size_t skip_a = rows_[a].name.size();
    const std::size_t skip_b = rows_[b].name.size();
    for (std::size_t i = 0; i < length; ++i) {
      if (rows_[a + i].key != rows_[b + i].key) return false;
      if (rows_[a + i].name.compare(skip_a, std::string::npos, rows_[b + i].name, skip_b, std::string::npos) != 0)
        return false;
    }
    return true;
  }

  const std::vector<NamedRow>& rows_;
};

}  // namespace

std::vector<FoldedRow> folded(const std::vector<NamedRow>& rows) {
  Folding folding(rows);
  folding.fold(0, rows.size(), {0}, 0, "");
  return folding.result;
}

std::string folded_list(const std::vector<std::string>& names) {
  std::string list;
  for (std::size_t first = 0; first < names.size();) {
    const auto begin = numbered(names[first]);
    std::size_t last = first;
    while (begin && last + 1 < names.size()) {
      const auto next = numbered(names[last + 1]);
      if (!next || next->prefix != begin->prefix || next->number != begin->number + (last + 1 - first)) break;
      ++last;
    }
    list += (list.empty() ? "" : ", ") + names[first];
    if (last > first) list += "-" + std::to_string(numbered(names[last])->number);
    first = last + 1;
  }
  return list;
}

bool same_but_for_rests(Bytes a, Bytes b) { return (a > b ? a - b : b - a) <= Bytes{1} << 20; }

}  // namespace plimsoll::report
