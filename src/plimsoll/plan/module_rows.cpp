#include "plimsoll/plan/module_rows.h"

#include <algorithm>
#include <set>
#include <utility>

#include "plimsoll/fsdp/fsdp_module.h"
#include "plimsoll/nn/hooks/hooks.h"
#include "plimsoll/plan/paths.h"
#include "plimsoll/tracker/display.h"

namespace plimsoll::plan {
namespace {

using ByCategory = std::map<std::string, Bytes>;

int parts_of(std::string_view path) {
  return path.empty() ? 0 : 1 + static_cast<int>(std::count(path.begin(), path.end(), '.'));
}

/// The path and those of all modules around it, the root's ("") included.
std::vector<std::string> with_ancestors(std::string path) {
  std::vector<std::string> paths{path};
  while (!path.empty()) {
    const auto dot = path.rfind('.');
    path = dot == std::string::npos ? "" : path.substr(0, dot);
    paths.push_back(path);
  }
  return paths;
}

/// What fully_shard took together has the paths of its modules with commas between.
std::vector<std::string> members_of(std::string_view owner) {
  std::vector<std::string> members;
  for (std::size_t begin = 0; begin <= owner.size();) {
    const auto comma = std::min(owner.find(',', begin), owner.size());
    auto one = owner.substr(begin, comma - begin);
    while (one.starts_with(' ')) one.remove_prefix(1);
    members.push_back(path_of(one));
    begin = comma + 1;
  }
  return members;
}

struct Natural {
  bool operator()(const std::string& a, const std::string& b) const { return natural_less(a, b); }
};

struct Rows {
  std::map<std::string, ByCategory> modules;          ///< By path, with all below.
  std::map<std::string, ByCategory, Natural> groups;  ///< Of modules that are sharded together.
  std::map<std::string, ByCategory> others;
};

Rows gather(const std::vector<LiveTensor>& alive) {
  Rows rows;
  for (const auto& tensor : alive) {
    const auto bytes = static_cast<Bytes>(tensor.bytes);
    if (!is_in_model(tensor.owner)) {
      rows.others[tensor.owner][tensor.category] += bytes;
      continue;
    }
    const auto members = members_of(tensor.owner);
    std::set<std::string> around;
    for (const auto& member : members) {
      auto paths = with_ancestors(member);
      if (members.size() > 1) paths.erase(paths.begin());  // It is of all of them, and of none alone.
      around.insert(paths.begin(), paths.end());
    }
    for (const auto& path : around) rows.modules[path][tensor.category] += bytes;
    if (members.size() > 1) {
      std::string name;
      for (const auto& member : members) name += (name.empty() ? "" : ", ") + member;
      rows.groups[with_readable_paths(name)][tensor.category] += bytes;
    }
  }
  return rows;
}

void fill(report::ModuleRow& row, const ByCategory& categories) {
  for (const auto& [category, bytes] : categories) {
    row.total += bytes;
    row.at_peak.push_back({category, bytes});
  }
  std::stable_sort(row.at_peak.begin(), row.at_peak.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
}

}  // namespace

std::vector<report::ModuleRow> module_rows(Trainer& trainer, MemTracker& tracker, const std::vector<LiveTensor>& alive,
                                           int depth) {
  const auto rows = gather(alive);
  std::map<std::string, Bytes> highest;
  for (const auto& stats : tracker.module_stats()) {
    const auto found = stats.local_peak.find(std::string(kDevice));
    if (found == stats.local_peak.end()) continue;
    auto& peak = highest[path_of(stats.fqn)];
    peak = std::max(peak, static_cast<Bytes>(found->second));
  }
  std::vector<report::ModuleRow> modules;
  std::set<std::string> seen;
  for (const auto& item : trainer.model()->named_modules("", /*include_self=*/true)) {
    const auto path = path_of(item.key());
    if (parts_of(path) > depth) continue;
    const bool first = seen.insert(path).second;
    if (!first) {
      // A checkpointed block has its wrapper's path, and its own type.
      const auto wrapper = std::find_if(modules.begin(), modules.end(), [&](const auto& m) { return m.name == path; });
      wrapper->type = nn::class_name(*item.value());
      continue;
    }
    report::ModuleRow row{.name = path, .type = nn::class_name(*item.value())};
    row.fsdp_unit = fsdp::FSDPModule::is_fsdp_module(*item.value());
    row.parameters = static_cast<std::uint64_t>(trainer.parameters_of().at(item.key()));
    if (const auto found = highest.find(path); found != highest.end()) row.highest = found->second;
    if (const auto found = rows.modules.find(path); found != rows.modules.end()) fill(row, found->second);
    modules.push_back(std::move(row));
  }
  std::stable_sort(modules.begin(), modules.end(),
                   [](const auto& a, const auto& b) { return natural_less(a.name, b.name); });
  for (const auto& [name, categories] : rows.groups) {
    report::ModuleRow row{.name = name, .type = "sharded together", .fsdp_unit = true};
    fill(row, categories);
    modules.push_back(std::move(row));
  }
  for (const auto& [name, categories] : rows.others) {
    report::ModuleRow row{.name = name.empty() ? "(no module)" : name, .type = name.empty() ? "" : "optimizer"};
    fill(row, categories);
    modules.push_back(std::move(row));
  }
  return modules;
}

}  // namespace plimsoll::plan
