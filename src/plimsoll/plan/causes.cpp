#include "plimsoll/plan/causes.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/plan/module_rows.h"

namespace plimsoll::plan {
namespace {

/// Every "LanguageModel.layers.3" in a sentence becomes "layers.3", and the model itself "the root".
std::string without_root(std::string text) {
  constexpr std::string_view kPrefix = "LanguageModel.";
  for (auto at = text.find(kPrefix); at != std::string::npos; at = text.find(kPrefix, at)) {
    text.erase(at, kPrefix.size());
  }
  constexpr std::string_view kWrapper = ".block.";
  for (auto at = text.find(kWrapper); at != std::string::npos; at = text.find(kWrapper, at)) {
    text.erase(at, kWrapper.size() - 1);
  }
  constexpr std::string_view kRoot = "LanguageModel";
  for (auto at = text.find(kRoot); at != std::string::npos; at = text.find(kRoot, at)) {
    text.replace(at, kRoot.size(), "the root");
  }
  return text;
}

template <class Owners>
void set_owners(report::PlanCause& cause, const Owners& owners) {
  for (const auto& [name, bytes] : owners) {
    cause.owners.emplace_back(without_root(name), static_cast<Bytes>(bytes));
  }
  std::stable_sort(cause.owners.begin(), cause.owners.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
}

}  // namespace

std::vector<report::PlanCause> causes_of(const Explanation& explanation) {
  std::vector<report::PlanCause> causes;
  for (const auto& cause : explanation.causes) {
    report::PlanCause copy{.bytes = static_cast<Bytes>(cause.bytes),
                           .category = cause.category,
                           .why = without_root(cause.why),
                           .sentence = without_root(cause.sentence)};
    set_owners(copy, cause.owners);
    causes.push_back(std::move(copy));
  }
  return causes;
}

std::vector<report::PlanCause> causes_of(const std::vector<LiveTensor>& alive) {
  std::map<std::string, std::map<std::string, std::int64_t>> by_category;
  for (const auto& tensor : alive) {
    by_category[tensor.category][tensor.owner.empty() ? "no module" : tensor.owner] += tensor.bytes;
  }
  std::vector<report::PlanCause> causes;
  for (const auto& [category, owners] : by_category) {
    report::PlanCause cause{.category = category, .why = "alive at the peak"};
    for (const auto& [name, bytes] : owners) cause.bytes += static_cast<Bytes>(bytes);
    set_owners(cause, owners);
    cause.sentence = format_bytes(cause.bytes) + " " + category + " of " + std::to_string(owners.size()) +
                     (owners.size() == 1 ? " owner" : " owners") + ", most of it of " + cause.owners.front().first;
    causes.push_back(std::move(cause));
  }
  std::stable_sort(causes.begin(), causes.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return causes;
}

}  // namespace plimsoll::plan
