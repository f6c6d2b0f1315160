#pragma once

#include <string>
#include <string_view>

/// Modules as people know the model: without the root's name, and without the wrapper of a checkpointed block.
namespace plimsoll::plan {

/// Of one module: "LanguageModel.layers.3.block.attention" is "layers.3.attention", the root is "".
std::string path_of(std::string_view fqn);

/// Whether the path, or the first of several, is the model's or of a module in it.
bool is_in_model(std::string_view fqn);

/// The same for every path in a text; the root is "the root", and blocks that were sharded together, which a path lists
/// with commas, are a range: "layers.8-15".
std::string with_readable_paths(std::string text);

}  // namespace plimsoll::plan
