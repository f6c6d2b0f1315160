#include <algorithm>
#include <cstdlib>

#include "plimsoll/report/comparison.h"
#include "plimsoll/report/text/amounts.h"
#include "plimsoll/report/text/folded_names.h"
#include "plimsoll/report/text/module_table.h"
#include "plimsoll/report/text/table.h"

namespace plimsoll::report {
namespace {

constexpr std::size_t kMostModules = 12;

std::string words_of(const NamedReport& side) {
  const std::optional<bool> fits = side.report.fits();
  if (!fits) return "has no verdict";
  return *fits ? "fits" : "does not fit";
}

std::string headline(const Comparison& comparison, const Amounts& amounts, Colour colour) {
  const Bytes a = comparison.a.report.peak.device;
  const Bytes b = comparison.b.report.peak.device;
  std::string text = "B takes ";
  if (a == b) {
    text += "as much as A on the device book: " + amounts(a);
  } else {
    text += amounts(std::max(a, b) - std::min(a, b)) + (a < b ? " more" : " less") +
            " than A on the device book: " + amounts(b) + " instead of " + amounts(a);
  }
  const std::string verdicts = "A " + words_of(comparison.a) + ", B " + words_of(comparison.b);
  const std::optional<bool> fits = comparison.b.report.fits();
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
  return std::string("  ") + letter + ": " + side.name + " (" +
         (job != nullptr ? "plan of " + strip_control_chars(job->model.name) : "run") + " on " +
         strip_control_chars(report.gpu.name) + ", " + format_bytes(report.gpu.memory) + ")\n" +
         // A plan that does not fit is run again on a larger card; a script is not.
         (job == nullptr && report.fits() != true ? "     its values end where the script ended\n" : "") +
         (report.is_attributed() ? "" : unattributed(report));
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

class ChangeTable {
 public:
  ChangeTable(const std::string& what, const Amounts& amounts)
      : amounts_(amounts),
        table_({{what},
                {"A", Align::kRight},
                {"B", Align::kRight},
                {"difference", Align::kRight},
                {"of A", Align::kRight}}) {}

  void add(const std::string& label, const BytesChange& change) {
    const Bytes a = change.a.value_or(0);
    const Bytes b = change.b.value_or(0);
    const double difference = static_cast<double>(b) - static_cast<double>(a);
    table_.add({strip_control_chars(label), change.a ? amounts_(a) : "-", change.b ? amounts_(b) : "-",
                amounts_.change(a, b),
                a == 0 || a == b ? "" : decimal(100.0 * difference / static_cast<double>(a), "%+.1f %%")});
  }

  std::string render(const std::string& title) const {
    return table_.empty() ? "" : "\n" + title + "\n" + table_.render();
  }

 private:
  const Amounts& amounts_;
  Table table_;
};

std::string all_changes(const std::vector<BytesChange>& changes, const std::string& what, const std::string& title,
                        const Amounts& amounts) {
  ChangeTable table(what, amounts);
  for (const BytesChange& change : changes) table.add(change.name, change);
  return table.render(title);
}

std::string category_table(const Comparison& comparison, const Amounts& amounts) {
  if (!comparison.categories) return "";
  std::vector<BytesChange> changed = *comparison.categories;
  const std::size_t same = std::erase_if(changed, [](const BytesChange& change) { return change.difference() == 0; });
  std::string text = all_changes(changed, "category", "Categories at the peak", amounts);
  if (same > 0 && !text.empty())
    text +=
        "  and " + std::to_string(same) + (same == 1 ? " category" : " categories") + " of which both have as much\n";
  return text;
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
  ChangeTable table("module", amounts);
  for (std::size_t i = 0; i < std::min(kMostModules, rows.size()); ++i) {
    const std::size_t count = rows[i].members.size();
    table.add(rows[i].label + (count > 1 ? " \u00D7" + std::to_string(count) + ", each" : ""),
              changes[rows[i].members.front()]);
  }
  std::string text = table.render("Modules that changed most at the peak");
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
  return text + setting_table(comparison) + all_changes(comparison.books, "book", "The three books", amounts) +
         category_table(comparison, amounts) +
         all_changes(comparison.phases, "phase", "Active peaks by phase, the highest of all steps", amounts) +
         largest_modules(comparison, options.depth, amounts);
}

}  // namespace plimsoll::report
