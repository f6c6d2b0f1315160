#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/distributed/process_group.h"

namespace plimsoll::distributed {

/// The ranks of a group's members, as in group_ranks; empty for a group of the caller's own with unknown ranks. Such a
/// group is assumed to be the whole world if it has the world's size, or if there is no default group.
std::optional<std::vector<int>> known_ranks(const ProcessGroup& group);

/// "ranks 0 to 7", "ranks 0, 4, 8"; a long list is shortened.
std::string describe_ranks(const std::vector<int>& ranks);

}  // namespace plimsoll::distributed
