#include "plimsoll/tracker/display.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "plimsoll/report/text/table.h"
#include "plimsoll/tracker/fsdp/fsdp_categories.h"

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
  return unit.bytes == 1 ? bytes == 0 : std::abs(static_cast<double>(bytes) / static_cast<double>(unit.bytes)) < 0.005;
}

/// The order in which categories are shown: torch's, and beside each what is its like. Those of the user's come last.
constexpr std::string_view kShownOrder[] = {fsdp_categories::kShardedParam,
                                            fsdp_categories::kUnshardedParam,
                                            "Parameter",
                                            fsdp_categories::kPostForwardShard,
                                            "Buffer",
                                            fsdp_categories::kShardedGrad,
                                            fsdp_categories::kUnshardedGrad,
                                            fsdp_categories::kAccumulatedGrad,
                                            fsdp_categories::kPartialGrad,
                                            "Gradient",
                                            "Activation",
                                            "Temp",
                                            fsdp_categories::kAllGatherInput,
                                            fsdp_categories::kAllGather,
                                            fsdp_categories::kAllGatherCopyOut,
                                            fsdp_categories::kReduceScatter,
                                            fsdp_categories::kReduceScatterOutput,
                                            fsdp_categories::kAllReduce,
                                            "Optstate",
                                            fsdp_categories::kOptState,
                                            fsdp_categories::kInputs,
                                            "Other",
                                            "Workspace"};

/// The categories that anything in the snapshots is of, in that order.
std::vector<std::string> all_categories(const std::vector<const DeviceSnapshot*>& snapshots) {
  std::vector<std::string> names;
  for (const auto* snapshot : snapshots) {
    for (const auto& [category, bytes] : snapshot->categories()) {
      if (bytes != 0 && std::find(names.begin(), names.end(), category) == names.end()) names.push_back(category);
    }
  }
  const auto place = [](const std::string& name) {
    return std::find(std::begin(kShownOrder), std::end(kShownOrder), name) - std::begin(kShownOrder);
  };
  std::stable_sort(names.begin(), names.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
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
    for (const auto& category : all_categories({&of_device})) {
      text += "  " + category + ": " + amount(of_device[category], unit) + "\n";
    }
    text += "  Total: " + amount(of_device.total(), unit) + "\n";
  }
  return text;
}

template <class Stats>
std::string table(const Stats& module, const UnitEntry& unit) {
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

template <class Stats>
std::string render_modules(const std::vector<Stats>& modules, const ModulewiseDisplay& display) {
  const auto& unit = entry_of(display.unit);
  std::vector<const Stats*> order;
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
  const auto categories = all_categories(devices_of(snapshot));
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
  return render_modules(modules, display);
}

std::string render(const std::vector<FSDPModuleStats>& modules, const ModulewiseDisplay& display) {
  return render_modules(modules, display);
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
