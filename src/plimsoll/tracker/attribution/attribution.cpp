#include "plimsoll/tracker/attribution/attribution.h"

#include <algorithm>
#include <set>
#include <utility>

#include "plimsoll/base/categories.h"
#include "plimsoll/base/text.h"

namespace plimsoll::inline tracker {
namespace {

using BytesByCategory = std::map<std::string, Bytes>;
using ByName = std::map<std::string, BytesByCategory, NaturalOrder>;

struct LiveBytes {
  std::map<std::string, BytesByCategory> modules;  ///< By path, with all below.
  ByName groups;                                   ///< Of modules that are sharded together.
  ByName others;                                   ///< Of optimizers, and of no module ("").
};

LiveBytes gather(const UserPaths& paths, const std::vector<LiveTensor>& alive) {
  LiveBytes live;
  for (const auto& tensor : alive) {
    const std::string category(name_in_documents(tensor.category));
    const auto bytes = static_cast<Bytes>(tensor.bytes);
    const auto members = paths.members(tensor.owner);
    if (members.empty()) {
      live.others[tensor.owner][category] += bytes;
      continue;
    }
    const bool is_group = members.size() > 1;
    std::set<std::string> around;
    for (const auto& member : members) {
      auto with_ancestors = paths.with_ancestors(member);
      if (is_group) with_ancestors.erase(with_ancestors.begin());  // The bytes belong to no single member.
      around.insert(with_ancestors.begin(), with_ancestors.end());
    }
    for (const auto& path : around) live.modules[path][category] += bytes;
    if (is_group) live.groups[paths.of_owner(tensor.owner)][category] += bytes;
  }
  return live;
}

/// The categories that have bytes, largest first.
std::vector<report::CategoryBytes> largest_first(const BytesByCategory& categories) {
  std::vector<report::CategoryBytes> sorted;
  for (const auto& [name, bytes] : categories) {
    if (bytes != 0) sorted.push_back({name, bytes});
  }
  std::ranges::stable_sort(sorted, std::greater(), &report::CategoryBytes::bytes);
  return sorted;
}

void fill(report::ModuleRow& row, const BytesByCategory& categories) {
  row.at_peak = largest_first(categories);
  for (const auto& entry : row.at_peak) row.total += entry.bytes;
}

std::map<std::string, Bytes> highest_of_modules(MemTracker& tracker, std::string_view device, const UserPaths& paths) {
  std::map<std::string, Bytes> highest;
  for (const auto& stats : tracker.module_stats()) {
    auto& peak = highest[paths.of(stats.fqn)];
    const auto found = stats.local_peak.find(std::string(device));
    if (found != stats.local_peak.end()) peak = std::max(peak, static_cast<Bytes>(found->second));
  }
  return highest;
}

}  // namespace

std::vector<report::ModuleRow> module_rows(const ModuleTree& tree, const UserPaths& paths,
                                           const std::vector<LiveTensor>& alive,
                                           const std::map<std::string, Bytes>& highest, int depth) {
  const auto live = gather(paths, alive);
  std::map<std::string, report::ModuleRow> by_path;
  for (const auto& module : tree.modules) {
    const auto path = paths.of(module.name);
    if (paths.depth(path) > depth || (module.parameters == 0 && !highest.contains(path))) continue;
    // A wrapper and the module in it share a path, and so a row.
    auto& row = by_path[path];
    row.name = path;
    row.type = module.type;
    row.fsdp_unit |= module.fsdp_unit;
    row.parameters = module.parameters;
  }
  std::vector<report::ModuleRow> rows;
  for (auto& [path, row] : by_path) {
    if (const auto found = highest.find(path); found != highest.end()) row.highest = found->second;
    if (const auto found = live.modules.find(path); found != live.modules.end()) fill(row, found->second);
    rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, NaturalOrder(), &report::ModuleRow::name);
  for (const auto& [name, categories] : live.groups) {
    fill(rows.emplace_back(report::ModuleRow{.name = name, .type = "sharded together", .fsdp_unit = true}), categories);
  }
  for (const auto& [name, categories] : live.others) {
    auto& row = rows.emplace_back(
        report::ModuleRow{.name = name.empty() ? "(no module)" : name, .type = name.empty() ? "" : "optimizer"});
    fill(row, categories);
  }
  return rows;
}

report::Attribution attribution(MemTracker& tracker, std::string_view device, const ModuleTree& tree, int depth) {
  report::Attribution result;
  const auto peak = tracker.snapshot(SnapshotKind::kPeak);
  const auto of_device = peak.find(std::string(device));
  if (of_device == peak.end() || of_device->second.total() == 0) return result;

  BytesByCategory categories;
  for (const auto& [name, bytes] : of_device->second.categories()) {
    categories[std::string(name_in_documents(name))] += static_cast<Bytes>(bytes);
  }
  result.categories = largest_first(categories);

  const UserPaths paths(tree);
  const auto explanation = tracker.explain(device, [&](const std::string& owner) { return paths.of_owner(owner); });
  if (explanation.module != report::kRootName) result.module = explanation.module;
  result.stage = explanation.stage;
  result.causes = explanation.causes;
  for (auto& cause : result.causes) cause.category = name_in_documents(cause.category);
  result.modules =
      module_rows(tree, paths, tracker.alive_at_peak(device), highest_of_modules(tracker, device, paths), depth);
  return result;
}

}  // namespace plimsoll::inline tracker
