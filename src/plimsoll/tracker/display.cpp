#include "plimsoll/tracker/display.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "plimsoll/report/table.h"

namespace plimsoll {

namespace {

struct UnitEntry {
  Unit unit;
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::array<UnitEntry, 4> kUnits = {{{Unit::B, "B", 1},
                                              {Unit::KiB, "KiB", std::int64_t{1} << 10},
                                              {Unit::MiB, "MiB", std::int64_t{1} << 20},
                                              {Unit::GiB, "GiB", std::int64_t{1} << 30}}};

constexpr std::string_view kSupported = "B, KiB, MiB, GiB";

const UnitEntry& entry_of(Unit unit) {
  for (const auto& entry : kUnits) {
    if (entry.unit == unit) return entry;
  }
  TORCH_CHECK_VALUE(false, "no such unit: ", static_cast<int>(unit), ". Supported units are ", kSupported, ".");
}

/// Two decimals, from KiB on.
std::string amount(std::int64_t bytes, const UnitEntry& unit) {
  if (unit.bytes == 1) return std::to_string(bytes) + " B";
  char text[64];
  std::snprintf(text, sizeof(text), "%.2f ", static_cast<double>(bytes) / static_cast<double>(unit.bytes));
  return text + std::string(unit.name);
}

bool rounds_to_nothing(std::int64_t bytes, const UnitEntry& unit) {
  return unit.bytes == 1 ? bytes == 0
                         : std::abs(static_cast<double>(bytes) / static_cast<double>(unit.bytes)) < 0.005;
}

/// The categories that any of the snapshots has, in the order of their first coming.
std::vector<std::string> all_categories(const std::vector<const Snapshot*>& snapshots) {
  std::vector<std::string> names;
  for (const auto* snapshot : snapshots) {
    for (const auto& [device, of_device] : *snapshot) {
      for (const auto& [category, bytes] : of_device.categories()) {
        if (std::find(names.begin(), names.end(), category) == names.end()) names.push_back(category);
      }
    }
  }
  return names;
}

report::Table table_of(std::vector<report::Column> first, const std::vector<std::string>& categories) {
  for (const auto& category : categories) first.push_back({category, report::Align::kRight});
  first.push_back({"Total", report::Align::kRight});
  return report::Table(std::move(first));
}

void add_amounts(std::vector<std::string>& cells, const DeviceSnapshot& of_device,
                 const std::vector<std::string>& categories, const UnitEntry& unit) {
  for (const auto& category : categories) cells.push_back(amount(of_device[category], unit));
  cells.push_back(amount(of_device.total(), unit));
}

std::string plain(const Snapshot& snapshot, const UnitEntry& unit) {
  std::string text;
  for (const auto& [device, of_device] : snapshot) {
    if (rounds_to_nothing(of_device.total(), unit)) continue;
    text += "Device: " + device + "\n";
    for (const auto& [category, bytes] : of_device.categories()) {
      text += "  " + category + ": " + amount(bytes, unit) + "\n";
    }
    text += "  Total: " + amount(of_device.total(), unit) + "\n";
  }
  return text;
}

std::string table(const ModuleStats& module, const UnitEntry& unit) {
  std::vector<const Snapshot*> all;
  for (const auto& [state, snapshots] : module.snapshots) {
    for (const auto& snapshot : snapshots) all.push_back(&snapshot);
  }
  const auto categories = all_categories(all);
  auto rows = table_of({{"State & Call"}, {"Device"}}, categories);
  for (const auto& [state, snapshots] : module.snapshots) {
    for (std::size_t call = 0; call < snapshots.size(); ++call) {
      std::string title = std::string(ledger::name(state)) + " # " + std::to_string(call + 1);
      for (const auto& [device, of_device] : snapshots[call]) {
        if (rounds_to_nothing(of_device.total(), unit)) continue;
        std::vector<std::string> cells{std::exchange(title, ""), device};
        add_amounts(cells, of_device, categories, unit);
        rows.add(std::move(cells));
      }
    }
  }
  return rows.render("");
}

int depth_of(const std::string& fqn) { return static_cast<int>(std::count(fqn.begin(), fqn.end(), '.')) + 1; }

}  // namespace

Unit parse_unit(std::string_view text) {
  for (const auto& entry : kUnits) {
    if (entry.name == text) return entry.unit;
  }
  TORCH_CHECK_VALUE(false, "no such unit: '", text, "'. Supported units are ", kSupported, ".");
}

std::string_view name(Unit unit) { return entry_of(unit).name; }

std::string render(const Snapshot& snapshot, Unit in, Layout layout) {
  const auto& unit = entry_of(in);
  if (snapshot.empty()) return "No memory tracked.\n";
  if (layout == Layout::Plain) return plain(snapshot, unit);
  const auto categories = all_categories({&snapshot});
  auto rows = table_of({{"Device"}}, categories);
  for (const auto& [device, of_device] : snapshot) {
    if (rounds_to_nothing(of_device.total(), unit)) continue;
    std::vector<std::string> cells{device};
    add_amounts(cells, of_device, categories, unit);
    rows.add(std::move(cells));
  }
  return rows.render("");
}

std::string render(const std::vector<ModuleStats>& modules, const ModulewiseDisplay& display) {
  const auto& unit = entry_of(display.unit);
  std::vector<const ModuleStats*> order;
  for (const auto& module : modules) {
    if (depth_of(module.fqn) <= display.depth) order.push_back(&module);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return natural_less(a->fqn, b->fqn); });
  std::string text;
  for (const auto* module : order) {
    text += "Module: " + module->fqn + "\n";
    if (display.layout == Layout::Table) {
      text += table(*module, unit) + "\n";
      continue;
    }
    for (const auto& [state, snapshots] : module->snapshots) {
      text += std::string(ledger::name(state)) + "\n";
      for (std::size_t call = 0; call < snapshots.size(); ++call) {
        text += "# " + std::to_string(call + 1) + ":\n" + plain(snapshots[call], unit);
      }
    }
    text += "\n";
  }
  return text;
}

bool natural_less(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const auto number = [&](std::string_view& text) {
        std::size_t length = 0;
        while (length < text.size() && is_digit(text[length])) ++length;
        auto digits = text.substr(0, length);
        text.remove_prefix(length);
        while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
        return digits;
      };
      const auto x = number(a), y = number(b);
      if (x != y) return x.size() != y.size() ? x.size() < y.size() : x < y;
    } else {
      if (lower(a.front()) != lower(b.front())) return lower(a.front()) < lower(b.front());
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.empty() && !b.empty();
}

}  // namespace plimsoll
