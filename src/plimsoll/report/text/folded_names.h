#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"

namespace plimsoll::report {

/// A module's path, and a key that is equal for equal modules.
struct NamedRow {
  std::string name;
  std::string key;
};

/// One row for equal modules: "layers.1-30".
struct FoldedRow {
  std::string label;
  std::vector<std::size_t> members;  ///< Indices of the folded rows, in order.
};

/// Folds blocks. Rows of consecutive numbers ("layers.1", "layers.2") become one if they and all rows below them have
/// equal keys; then their children are folded too ("layers.1-30.mlp"). REQUIRES: natural order, parents before
/// children.
std::vector<FoldedRow> folded(const std::vector<NamedRow>& rows);

/// The names with commas between; neighbours with consecutive numbers are a range: "norm, layers.8-15".
std::string folded_list(const std::vector<std::string>& names);

/// Whether two amounts differ by at most 1 MiB: the rest of a block that the caching allocator does not split off.
bool same_but_for_rests(Bytes a, Bytes b);

}  // namespace plimsoll::report
