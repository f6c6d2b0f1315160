#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"

namespace plimsoll::report {

/// A module's path, and all that makes it alike to another or not.
struct NamedRow {
  std::string name;
  std::string key;
};

/// One row for modules that are alike: "layers.1-30".
struct FoldedRow {
  std::string label;
  std::vector<std::size_t> members;  ///< Indices of the rows that it stands for, the first of them first.
};

/// Folds blocks: of rows in natural order, parents before children, those of consecutive numbers ("layers.1",
/// "layers.2") become one where they and everything below them have equal keys. Then their children are folded too
/// ("layers.1-30.mlp").
std::vector<FoldedRow> folded(const std::vector<NamedRow>& rows);

/// The names with commas between; neighbours with consecutive numbers are a range: "norm, layers.8-15".
std::string folded_list(const std::vector<std::string>& names);

/// Whether two amounts are the same but for the rest of a block that the caching allocator leaves with a tensor, where
/// it is too small to be of use: up to 1 MiB.
bool same_but_for_rests(Bytes a, Bytes b);

}  // namespace plimsoll::report
