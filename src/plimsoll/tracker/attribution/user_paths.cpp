#include "plimsoll/tracker/attribution/user_paths.h"

#include <algorithm>

#include "plimsoll/report/attribution.h"
#include "plimsoll/report/text/folded_names.h"

namespace plimsoll::inline tracker {
namespace {

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  return parts;
}

}  // namespace

UserPaths::UserPaths(const ModuleTree& tree) : wrappers_(tree.wrappers) {
  std::vector<std::string> with_parameters;
  for (const auto& module : tree.modules) {
    if (module.name.find('.') != std::string::npos) continue;
    roots_.push_back(module.name);
    if (module.parameters != 0) with_parameters.push_back(module.name);
  }
  if (with_parameters.size() == 1) only_root_ = with_parameters.front();
  for (const auto& module : tree.modules) known_.push_back(of(module.name));
  std::ranges::sort(known_);
}

std::string UserPaths::of(std::string_view name) const {
  auto parts = split(name, ".");
  std::erase_if(parts, [&](auto part) { return std::ranges::find(wrappers_, part) != wrappers_.end(); });
  if (!parts.empty() && !only_root_.empty() && parts.front() == only_root_) parts.erase(parts.begin());
  std::string path;
  for (const auto part : parts) path.append(path.empty() ? "" : ".").append(part);
  return path;
}

std::string UserPaths::of_owner(std::string_view owner) const {
  std::vector<std::string> paths;
  for (const auto name : split(owner, ", ")) {
    paths.push_back(of(name));
    if (paths.back().empty()) paths.back() = report::kRootName;
  }
  return report::folded_list(paths);
}

std::vector<std::string> UserPaths::members(std::string_view owner) const {
  std::vector<std::string> members;
  if (owner.empty()) return members;
  for (const auto name : split(owner, ", ")) {
    members.push_back(of(name));
    if (!std::ranges::binary_search(known_, members.back())) return {};
  }
  return members;
}

std::vector<std::string> UserPaths::with_ancestors(std::string path) const {
  const bool below_only_root = !path.empty() && !begins_with_root(path);
  std::vector<std::string> paths{path};
  for (auto dot = path.rfind('.'); dot != std::string::npos; dot = path.rfind('.')) {
    path.resize(dot);
    paths.push_back(path);
  }
  if (below_only_root) paths.emplace_back();
  return paths;
}

int UserPaths::depth(std::string_view path) const {
  if (path.empty()) return 0;
  const auto points = static_cast<int>(std::ranges::count(path, '.'));
  return begins_with_root(path) ? points : points + 1;
}

bool UserPaths::begins_with_root(std::string_view path) const {
  return only_root_.empty() || std::ranges::find(roots_, path.substr(0, path.find('.'))) != roots_.end();
}

}  // namespace plimsoll::inline tracker
