#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/distributed/process_group.h"

namespace plimsoll::distributed {

/// The ranks of a group's members, as group_ranks has them; nothing for a group of the caller's own whose ranks cannot
/// be known. Such a group is taken to be the whole world where it has its size, or where there is no default group.
std::optional<std::vector<int>> known_ranks(const ProcessGroup& group);

/// "ranks 0 to 7", "ranks 0, 4, 8"; a long list is cut short.
std::string describe_ranks(const std::vector<int>& ranks);

}  // namespace plimsoll::distributed
