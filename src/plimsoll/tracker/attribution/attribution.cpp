#include "plimsoll/tracker/attribution/attribution.h"

#include <map>
#include <string>

#include "plimsoll/base/categories.h"
#include "plimsoll/tracker/attribution/module_rows.h"

namespace plimsoll::inline tracker {
namespace {

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
