#include <algorithm>

#include "plimsoll/report/text/folded_names.h"
#include "plimsoll/report/text/sections.h"
#include "plimsoll/report/text/table.h"

namespace plimsoll::report {
namespace {

constexpr std::size_t kMostCategories = 5;
constexpr std::size_t kMostRows = 60;

struct Row {
  std::string label;
  const ModuleRow* module;
  Bytes highest;
};

Bytes bytes_of(const ModuleRow& module, const std::string& category) {
  for (const CategoryBytes& entry : module.at_peak) {
    if (entry.category == category) return entry.bytes;
  }
  return 0;
}

bool alike(const ModuleRow& a, const ModuleRow& b) {
  const auto has_as_much = [](const ModuleRow& one, const ModuleRow& other) {
    return std::all_of(one.at_peak.begin(), one.at_peak.end(), [&](const CategoryBytes& entry) {
      return same_but_for_rests(entry.bytes, bytes_of(other, entry.category));
    });
  };
  return has_as_much(a, b) && has_as_much(b, a);
}

/// Modules with equal keys share a row. The highest total is not in the key: it grows from block to block in each
/// forward. `kinds` has one module of each kind so far.
std::string key_of(const ModuleRow& module, std::vector<const ModuleRow*>& kinds) {
  const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const auto* kind) { return alike(*kind, module); });
  const auto kind = static_cast<std::size_t>(found - kinds.begin());
  if (kind == kinds.size()) kinds.push_back(&module);
  return module.type + (module.fsdp_unit ? "*" : "") + "|" + std::to_string(module.parameters) + "|" +
         std::to_string(kind);
}

std::vector<Row> rows_of(const std::vector<const ModuleRow*>& modules) {
  std::vector<NamedRow> named;
  std::vector<const ModuleRow*> kinds;
  for (const ModuleRow* module : modules) named.push_back({module->name, key_of(*module, kinds)});
  std::vector<Row> rows;
  for (const FoldedRow& folded_row : folded(named)) {
    const ModuleRow& first = *modules[folded_row.members.front()];
    Row row{first.name.empty() ? "(the model)" : folded_row.label, &first, 0};
    if (first.fsdp_unit) row.label += " *";
    const std::size_t count = folded_row.members.size();
    if (count > 1) row.label += " \u00D7" + std::to_string(count);
    for (const std::size_t member : folded_row.members) row.highest = std::max(row.highest, modules[member]->highest);
    rows.push_back(row);
  }
  return rows;
}

std::string render(const std::vector<Row>& rows, std::vector<CategoryBytes> categories, std::size_t shown,
                   const Amounts& amounts) {
  const bool rest = shown < categories.size();
  categories.resize(shown);
  std::vector<Column> columns{{"module"}, {"params", Align::kRight}, {"at peak", Align::kRight}};
  for (const CategoryBytes& entry : categories) columns.push_back({entry.category, Align::kRight});
  if (rest) columns.push_back({"the rest", Align::kRight});
  columns.push_back({"highest", Align::kRight});
  Table table(columns);
  const auto cell = [&](Bytes bytes) { return bytes == 0 ? "-" : amounts(bytes); };
  for (const Row& row : rows) {
    std::vector<std::string> cells{row.label, parameter_count(row.module->parameters), cell(row.module->total)};
    Bytes left = row.module->total;
    for (const CategoryBytes& entry : categories) {
      const Bytes bytes = bytes_of(*row.module, entry.category);
      left -= std::min(left, bytes);
      cells.push_back(cell(bytes));
    }
    if (rest) cells.push_back(cell(left));
    cells.push_back(cell(row.highest));
    table.add(cells);
  }
  return table.render();
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    widest = std::max(widest, width_of(text.substr(at, end - at)));
    at = end + 1;
  }
  return widest;
}

}  // namespace

std::size_t depth_of(const std::string& module) {
  return module.empty() ? 0 : 1 + static_cast<std::size_t>(std::count(module.begin(), module.end(), '.'));
}

std::string module_table(const std::vector<ModuleRow>& modules, std::vector<CategoryBytes> categories,
                         std::size_t depth, const Amounts& amounts) {
  std::vector<const ModuleRow*> listed;
  for (const ModuleRow& module : modules) {
    if (depth_of(module.name) <= depth) listed.push_back(&module);
  }
  if (listed.empty()) return "";
  std::vector<Row> rows = rows_of(listed);
  const std::size_t left_out = rows.size() - std::min(rows.size(), kMostRows);
  rows.resize(rows.size() - left_out);
  std::erase_if(categories, [&](const CategoryBytes& entry) {
    return std::none_of(rows.begin(), rows.end(),
                        [&](const Row& row) { return bytes_of(*row.module, entry.category) > 0; });
  });
  std::size_t shown = std::min(kMostCategories, categories.size());
  std::string table = render(rows, categories, shown, amounts);
  while (shown > 1 && widest_line(table) > kLineWidth) {
    table = render(rows, categories, --shown, amounts);
  }
  std::string text = "\nThe peak by module\n" + table;
  const auto is_folded = [](const Row& row) { return row.label.find("\u00D7") != std::string::npos; };
  if (left_out > 0) text += "  and " + counted(left_out, "row") + " more; the JSON has them all\n";
  const bool sharded = std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.module->fsdp_unit; });
  text += std::string("  ") + (sharded ? "* = an FSDP unit. " : "") +
          "'highest' = the peak of the whole GPU while the module ran.\n";
  if (std::any_of(rows.begin(), rows.end(), is_folded)) {
    text +=
        "  \u00D7N = N equal modules (apart from rounding). Numbers are for the first; 'highest' is the largest of "
        "all.\n";
  }
  return text;
}

}  // namespace plimsoll::report
