#include "plimsoll/report/text/category_words.h"

#include <array>
#include <utility>

namespace plimsoll::report {
namespace {

using Words = std::pair<std::string_view, std::string_view>;

// The tracker's names; docs/fsdp_mem_tracker.md says more of each.
constexpr std::array<Words, 22> kWords{{
    {"Activation", "results of forward that backward needs, or that are still in use"},
    {"Sharded Param", "this rank's part of the parameters"},
    {"Unsharded Param", "whole parameters of the modules that run now, or are kept whole"},
    {"All Gather", "buffers that whole parameters arrive in"},
    {"All Gather Input", "this rank's part, made ready to be sent"},
    {"All Gather Copy-Out", "parameters that arrived, laid out anew"},
    {"Post-Forward Shard", "what is kept sharded over fewer ranks between forward and backward"},
    {"Unsharded Grad", "gradients of whole parameters, until they are reduced"},
    {"Accumulated Grad", "whole gradients that wait for the last of the accumulated batches"},
    {"Reduce Scatter", "buffers that gradients are reduced from"},
    {"Reduce Scatter Output", "what gradients are reduced to"},
    {"All Reduce", "gradients on their way between replicas"},
    {"Partial Grad", "gradients that wait for the other replicas"},
    {"Sharded Grad", "this rank's part of the gradients"},
    {"OptState", "the optimizer's state"},
    {"Temp", "what backward and the optimizer make and do not keep"},
    {"Buffer", "tensors of modules that are not trained"},
    {"Inputs", "the batch"},
    {"Parameter", "parameters that are not sharded"},
    {"Gradient", "gradients of parameters that are not sharded"},
    {"Workspace", "where cuBLAS works"},
    {"Other", "what no module made before the first step: data, copies of weights"},
}};

}  // namespace

std::string category_words(std::string_view category) {
  for (const auto& [name, words] : kWords) {
    if (name == category) return std::string(words);
  }
  return "";
}

}  // namespace plimsoll::report
