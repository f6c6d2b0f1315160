#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

/// The categories of memory. This table is the only place that declares one: the ledger, the trackers, the reports,
/// Python and the tables of the docs use it. It is in `base` because `report` sees no other layer.
namespace plimsoll {

struct Category {
  std::string_view name;  ///< In documents and tables.
  std::string_view
      torch_mem;  ///< The spelling of torch's MemTracker, and so of ours; "" if torch's has no such category.
  std::string_view torch_fsdp;  ///< The spelling of torch's FSDPMemTracker.
  std::string_view words;       ///< A description for a reader of a report.
  std::string_view why;         ///< The reason in an explanation, if a category has only one.
};

namespace category {

inline constexpr Category kShardedParam{"Sharded Param", "", "Sharded Param", "this rank's part of the parameters",
                                        "this rank's shards"};
inline constexpr Category kUnshardedParam{"Unsharded Param", "", "Unsharded Param",
                                          "whole parameters of the modules that run now, or are kept whole", ""};
inline constexpr Category kParameter{"Parameter", "Parameter", "", "parameters that are not sharded",
                                     "parameters that are not sharded"};
inline constexpr Category kPostForwardShard{"Post-Forward Shard", "", "",
                                            "shards over fewer ranks, kept between forward and backward",
                                            "kept for backward by reshard_after_forward"};
inline constexpr Category kBuffer{"Buffer", "Buffer", "Buffer", "buffers of modules, which are not trained", ""};
inline constexpr Category kShardedGrad{"Sharded Grad", "", "Sharded Grad", "this rank's part of the gradients",
                                       "gradients of this rank's shards"};
inline constexpr Category kUnshardedGrad{"Unsharded Grad", "", "Unsharded Grad",
                                         "gradients of whole parameters, until they are reduced", ""};
inline constexpr Category kAccumulatedGrad{"Accumulated Grad", "", "",
                                           "whole gradients that wait for the last of the accumulated batches",
                                           "kept whole by backwards without gradient sync"};
inline constexpr Category kPartialGrad{"Partial Grad", "", "", "gradients that wait for the other replicas",
                                       "wait for the all-reduce of a later backward"};
inline constexpr Category kGradient{"Gradient", "Gradient", "", "gradients of parameters that are not sharded",
                                    "gradients of parameters that are not sharded"};
inline constexpr Category kActivation{"Activation", "Activation", "Activation",
                                      "results of forward that backward needs, or that are still in use", ""};
inline constexpr Category kTemp{"Temp", "Temp", "Temp", "temporaries of backward and of the optimizer", ""};
inline constexpr Category kAllGatherInput{"All Gather Input", "", "", "this rank's part, prepared for the all-gather",
                                          "shards on their way into an all-gather"};
inline constexpr Category kAllGather{"All Gather", "", "All Gather", "output buffers of all-gathers", ""};
inline constexpr Category kAllGatherCopyOut{"All Gather Copy-Out", "", "", "gathered parameters in their own layout",
                                            "gathered shards in their own layout"};
inline constexpr Category kReduceScatter{"Reduce Scatter", "", "Reduce Scatter",
                                         "buffers that gradients are reduced from", ""};
inline constexpr Category kReduceScatterOutput{"Reduce Scatter Output", "", "", "buffers that gradients are reduced to",
                                               "this rank's part of a reduce-scatter, not yet a gradient"};
inline constexpr Category kAllReduce{"All Reduce", "", "", "gradients on their way between replicas",
                                     "reduced among replicas, and kept until that is over"};
inline constexpr Category kOptState{"OptState", "Optstate", "OptState", "the optimizer's state",
                                    "state of the optimizer"};
inline constexpr Category kInputs{"Inputs", "", "Inputs", "the batch", "the batch"};
inline constexpr Category kOther{"Other", "Other", "",
                                 "made outside of modules before the first step: data, copies of weights",
                                 "made before training began, or outside of tracking"};
inline constexpr Category kWorkspace{"Workspace", "", "", "workspaces of cuBLAS", "workspaces of cuBLAS"};

}  // namespace category

/// In the order in which tables show them: torch's order, with similar categories together.
inline constexpr Category kCategories[] = {category::kShardedParam,
                                           category::kUnshardedParam,
                                           category::kParameter,
                                           category::kPostForwardShard,
                                           category::kBuffer,
                                           category::kShardedGrad,
                                           category::kUnshardedGrad,
                                           category::kAccumulatedGrad,
                                           category::kPartialGrad,
                                           category::kGradient,
                                           category::kActivation,
                                           category::kTemp,
                                           category::kAllGatherInput,
                                           category::kAllGather,
                                           category::kAllGatherCopyOut,
                                           category::kReduceScatter,
                                           category::kReduceScatterOutput,
                                           category::kAllReduce,
                                           category::kOptState,
                                           category::kInputs,
                                           category::kOther,
                                           category::kWorkspace};

/// The category with this name, in documents or in MemTracker; null for a name of the user's.
constexpr const Category* find_category(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(kCategories, [&](const Category& one) { return one.name == name || one.torch_mem == name; });
  return found == std::end(kCategories) ? nullptr : found;
}

/// The name in documents of a category that a tracker names.
constexpr std::string_view name_in_documents(std::string_view name) {
  const Category* const known = find_category(name);
  return known == nullptr ? name : known->name;
}

/// MemTracker's spelling: torch's, if torch's MemTracker has the category.
constexpr std::string_view name_in_mem_tracker(const Category& category) {
  return category.torch_mem.empty() ? category.name : category.torch_mem;
}

}  // namespace plimsoll
