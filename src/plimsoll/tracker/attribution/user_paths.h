#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::inline tracker {

/// A module as a value: the module may be gone.
struct ModuleEntry {
  std::string name;  ///< With its root's: "Net.layers.0".
  std::string type;  ///< The class, as its author calls it.
  bool fsdp_unit = false;
  std::uint64_t parameters = 0;  ///< Of the module and all below it, before sharding.
};

/// The modules of a job's models.
struct ModuleTree {
  std::vector<ModuleEntry> modules;   ///< Parents before children.
  std::vector<std::string> wrappers;  ///< Names of children that stand for their parent: "_checkpoint_wrapped_module".
};

/// Modules as users know them: without wrappers and, if only one model has parameters, without its name. Then the root
/// is "". If several have, each path starts with the class of its root.
class UserPaths {
 public:
  explicit UserPaths(const ModuleTree& tree);

  /// "Net.layers.3._checkpoint_wrapped_module.attention" is "layers.3.attention". Other owners keep their names.
  std::string of(std::string_view name) const;
  /// Of one module, or of several that are sharded together: "Net.layers.8, Net.layers.9" is "layers.8-9".
  std::string of_owner(std::string_view owner) const;

  /// The paths of the modules in an owner's name; empty for another owner.
  std::vector<std::string> members(std::string_view owner) const;
  /// The path, and those of all modules around it, the innermost first.
  std::vector<std::string> with_ancestors(std::string path) const;
  /// The parts of a path, without its root.
  int depth(std::string_view path) const;

 private:
  bool begins_with_root(std::string_view path) const;

  std::vector<std::string> wrappers_;
  std::vector<std::string> roots_;
  std::string only_root_;           ///< "" if several models have parameters, or none.
  std::vector<std::string> known_;  ///< Paths of all modules, sorted.
};

}  // namespace plimsoll::inline tracker
