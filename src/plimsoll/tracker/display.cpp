#include "plimsoll/tracker/display.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "plimsoll/base/categories.h"
#include "plimsoll/base/text.h"
#include "plimsoll/report/text/table.h"

namespace plimsoll::inline tracker {

namespace {

std::string amount(std::int64_t bytes, ByteUnit unit) {
  return (bytes < 0 ? "-" : "") + format_bytes(static_cast<Bytes>(std::abs(bytes)), unit);
}

bool rounds_to_zero(std::int64_t bytes, ByteUnit unit) {
  return std::abs(static_cast<double>(bytes) / static_cast<double>(bytes_of(unit))) < 0.005;
}

/// The categories that have bytes in a snapshot, in the order of the table.
std::vector<std::string> all_categories(const std::vector<const DeviceSnapshot*>& snapshots) {
  std::vector<std::string> names;
  for (const auto* snapshot : snapshots) {
    for (const auto& [category, bytes] : snapshot->categories()) {
      if (bytes != 0 && std::find(names.begin(), names.end(), category) == names.end()) names.push_back(category);
    }
  }
  // The user's own come last.
  const auto place = [](const std::string& name) {
    const auto* const known = find_category(name);
    return known == nullptr ? std::end(kCategories) : known;
  };
  std::ranges::stable_sort(names, {}, place);
  return names;
}

std::vector<const DeviceSnapshot*> devices_of(const Snapshot& snapshot) {
  std::vector<const DeviceSnapshot*> all;
  for (const auto& [device, of_device] : snapshot) all.push_back(&of_device);
  return all;
}

report::Table table_of(std::vector<report::Column> first, const std::vector<std::string>& categories) {
  for (const auto& category : categories) first.push_back({category, report::Align::kRight});
  first.push_back({"Total", report::Align::kRight});
  return report::Table(std::move(first));
}

void add_row(report::Table& table, std::vector<std::string> cells, const DeviceSnapshot& of_device,
             const std::vector<std::string>& categories, ByteUnit unit) {
  for (const auto& category : categories) cells.push_back(amount(of_device[category], unit));
  cells.push_back(amount(of_device.total(), unit));
  table.add(std::move(cells));
}

std::string plain(const Snapshot& snapshot, ByteUnit unit) {
  std::string text;
  for (const auto& [device, of_device] : snapshot) {
    if (rounds_to_zero(of_device.total(), unit)) continue;
    text += "Device: " + device + "\n";
    for (const auto& category : all_categories({&of_device})) {
      text += "  " + category + ": " + amount(of_device[category], unit) + "\n";
    }
    text += "  Total: " + amount(of_device.total(), unit) + "\n";
  }
  return text;
}

template <class Stats>
std::string table(const Stats& module, ByteUnit unit) {
  std::vector<const DeviceSnapshot*> all;
  for (const auto& [state, snapshots] : module.snapshots) {
    for (const auto& snapshot : snapshots) std::ranges::copy(devices_of(snapshot), std::back_inserter(all));
  }
  const auto categories = all_categories(all);
  auto rows = table_of({{"State & Call"}, {"Device"}}, categories);
  for (const auto& [state, snapshots] : module.snapshots) {
    for (std::size_t call = 0; call < snapshots.size(); ++call) {
      std::string title = std::string(name(state)) + " # " + std::to_string(call + 1);
      for (const auto& [device, of_device] : snapshots[call]) {
        if (rounds_to_zero(of_device.total(), unit)) continue;
        add_row(rows, {std::exchange(title, ""), device}, of_device, categories, unit);
      }
    }
  }
  return rows.render("");
}

int depth_of(const std::string& fqn) { return static_cast<int>(std::count(fqn.begin(), fqn.end(), '.')) + 1; }

template <class Stats>
std::string render_modules(const std::vector<Stats>& modules, const ModulewiseDisplay& display) {
  const auto unit = display.unit;
  std::vector<const Stats*> order;
  for (const auto& module : modules) {
    if (depth_of(module.fqn) <= display.depth) order.push_back(&module);
  }
  std::ranges::stable_sort(order, natural_less, &Stats::fqn);
  std::string text;
  for (const auto* module : order) {
    text += "Module: " + module->fqn + "\n";
    if (display.layout == Layout::kTable) {
      text += table(*module, unit) + "\n";
      continue;
    }
    for (const auto& [state, snapshots] : module->snapshots) {
      text += std::string(name(state)) + "\n";
      for (std::size_t call = 0; call < snapshots.size(); ++call) {
        text += "# " + std::to_string(call + 1) + ":\n" + plain(snapshots[call], unit);
      }
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string render(const Snapshot& snapshot, ByteUnit unit, Layout layout) {
  if (snapshot.empty()) return "No memory tracked.\n";
  if (layout == Layout::kPlain) return plain(snapshot, unit);
  const auto categories = all_categories(devices_of(snapshot));
  auto rows = table_of({{"Device"}}, categories);
  for (const auto& [device, of_device] : snapshot) {
    if (rounds_to_zero(of_device.total(), unit)) continue;
    add_row(rows, {device}, of_device, categories, unit);
  }
  return rows.render("");
}

std::string render(const std::vector<ModuleStats>& modules, const ModulewiseDisplay& display) {
  return render_modules(modules, display);
}

std::string render(const std::vector<FSDPModuleStats>& modules, const ModulewiseDisplay& display) {
  return render_modules(modules, display);
}

}  // namespace plimsoll::inline tracker
