#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "plimsoll/report/comparison.h"
#include "plimsoll/report/text/folded_names.h"
#include "plimsoll/report/text/sections.h"
#include "plimsoll/report/text/table.h"

namespace plimsoll::report {
namespace {

constexpr std::size_t kMostModules = 12;

std::string words_of(std::optional<bool> fits) { return !fits ? "has no verdict" : *fits ? "fits" : "does not fit"; }

std::string headline(const Comparison& comparison, const Amounts& amounts, Colour colour) {
  const Bytes a = comparison.a.report.peak.device;
  const Bytes b = comparison.b.report.peak.device;
  const std::string text =
      a == b ? fmt::format("B takes as much as A on the device book: {}", amounts(a))
             : fmt::format("B takes {} {} than A on the device book: {} instead of {}",
                           amounts(std::max(a, b) - std::min(a, b)), a < b ? "more" : "less", amounts(b), amounts(a));
  const std::optional<bool> fits = comparison.b.report.fits();
  const std::string verdicts = fmt::format("A {}, B {}", words_of(comparison.a.report.fits()), words_of(fits));
  const Ink ink = fits == true ? Ink::kGood : fits == false ? Ink::kBad : Ink::kWarning;
  return text + "; " + paint(verdicts, ink, colour) + "\n";
}

std::string unattributed(const Report& report) {
  const std::string why = report.attribution.empty() ? "" : ": " + strip_control_chars(report.attribution);
  return "     " + wrapped("its categories and modules are not known" + why, 115, "     ") + "\n";
}

std::string side(const char* letter, const NamedReport& side) {
  const Report& report = side.report;
  const PlannedJob* job = report.planned();
  // A plan that does not fit is run again on a larger card; a script is not.
  const bool is_cut = job == nullptr && report.fits() != true;
  return fmt::format("  {}: {} ({} on {}, {})\n{}{}", letter, side.name,
                     job != nullptr ? "plan of " + strip_control_chars(job->model.name) : "run",
                     strip_control_chars(report.gpu.name), format_bytes(report.gpu.memory),
                     is_cut ? "     its values end where the script ended\n" : "",
                     report.is_attributed() ? "" : unattributed(report));
}

std::string value_of(const JobValue& value) {
  return std::holds_alternative<std::nullptr_t>(value) ? "-" : strip_control_chars(shown(value));
}

std::string setting_table(const Comparison& comparison) {
  if (!comparison.settings) return "";
  if (comparison.settings->empty()) return "\nNo setting differs\n";
  Table table({{"setting"}, {"A"}, {"B"}});
  for (const SettingChange& change : *comparison.settings) {
    table.add({strip_control_chars(change.name), value_of(change.a), value_of(change.b)});
  }
  return "\nSettings that differ\n" + table.render();
}

/// A table with a row for each change, under its title; "" without changes.
std::string change_table(const std::vector<BytesChange>& changes, const std::string& what, const std::string& title,
                         const Amounts& amounts) {
  if (changes.empty()) return "";
  Table table(
      {{what}, {"A", Align::kRight}, {"B", Align::kRight}, {"difference", Align::kRight}, {"of A", Align::kRight}});
  for (const BytesChange& change : changes) {
    const Bytes a = change.a.value_or(0);
    const Bytes b = change.b.value_or(0);
    const double part = 100.0 * static_cast<double>(change.difference()) / static_cast<double>(a);
    table.add({strip_control_chars(change.name), change.a ? amounts(a) : "-", change.b ? amounts(b) : "-",
               amounts.change(a, b), a == 0 || a == b ? "" : decimal(part, "%+.1f %%")});
  }
  return "\n" + title + "\n" + table.render();
}

std::string category_table(const Comparison& comparison, const Amounts& amounts) {
  if (!comparison.categories) return "";
  std::vector<BytesChange> changed = *comparison.categories;
  const std::size_t same = std::erase_if(changed, [](const BytesChange& change) { return change.difference() == 0; });
  std::string text = change_table(changed, "category", "Categories at the peak", amounts);
  if (same == 0 || text.empty()) return text;
  return text + fmt::format("  and {} {} of which both have as much\n", same, same == 1 ? "category" : "categories");
}

std::string largest_modules(const Comparison& comparison, std::size_t depth, const Amounts& amounts) {
  if (!comparison.modules) return "";
  std::vector<BytesChange> changes = *comparison.modules;
  std::erase_if(changes,
                [&](const BytesChange& change) { return change.name.empty() || depth_of(change.name) > depth; });
  std::vector<NamedRow> named;
  std::vector<const BytesChange*> kinds;  // One of each, alike but for rests.
  const auto near = [](const std::optional<Bytes>& x, const std::optional<Bytes>& y) {
    return x.has_value() == y.has_value() && same_but_for_rests(x.value_or(0), y.value_or(0));
  };
  for (const BytesChange& change : changes) {
    const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const BytesChange* kind) {
      return near(kind->a, change.a) && near(kind->b, change.b);
    });
    named.push_back({change.name, std::to_string(found - kinds.begin())});
    if (found == kinds.end()) kinds.push_back(&change);
  }
  std::vector<FoldedRow> rows = folded(named);
  const auto size = [&](const FoldedRow& row) { return std::abs(changes[row.members.front()].difference()); };
  std::stable_sort(rows.begin(), rows.end(), [&](const FoldedRow& x, const FoldedRow& y) { return size(x) > size(y); });
  std::vector<BytesChange> largest;
  for (std::size_t i = 0; i < std::min(kMostModules, rows.size()); ++i) {
    const std::size_t count = rows[i].members.size();
    largest.push_back(changes[rows[i].members.front()]);
    largest.back().name = rows[i].label + (count > 1 ? fmt::format(" \u00D7{}, each", count) : "");
  }
  std::string text = change_table(largest, "module", "Modules that changed most at the peak", amounts);
  if (rows.size() > kMostModules)
    text += "  and " + counted(rows.size() - kMostModules, "row") + " more; the JSON has them all\n";
  return text;
}

}  // namespace

std::string to_text(const Comparison& comparison, const TextOptions& options) {
  const Amounts amounts(options.unit);
  std::string text = headline(comparison, amounts, options.colour);
  if (options.quiet) return text;
  text += side("A", comparison.a) + side("B", comparison.b);
  if (!comparison.categories) {
    text += "  Only verdict, books and phases are compared.\n";
  } else if (!comparison.settings) {
    text += "  Settings are not compared: the report of a run does not have them.\n";
  }
  return text + setting_table(comparison) + change_table(comparison.books, "book", "The three books", amounts) +
         category_table(comparison, amounts) +
         change_table(comparison.phases, "phase", "Active peaks by phase, the highest of all steps", amounts) +
         largest_modules(comparison, options.depth, amounts);
}

}  // namespace plimsoll::report
