#include "plimsoll/plan/causes.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/plan/paths.h"

namespace plimsoll::plan {
namespace {

template <class Owners>
void set_owners(report::PeakCause& cause, const Owners& owners) {
  for (const auto& [name, bytes] : owners) {
    cause.owners.emplace_back(with_readable_paths(name), static_cast<Bytes>(bytes));
  }
  std::stable_sort(cause.owners.begin(), cause.owners.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
}

}  // namespace

std::vector<report::PeakCause> causes_of(const Explanation& explanation) {
  std::vector<report::PeakCause> causes;
  for (const auto& cause : explanation.causes) {
    report::PeakCause copy{.bytes = static_cast<Bytes>(cause.bytes),
                           .category = cause.category,
                           .why = with_readable_paths(cause.why),
                           .sentence = with_readable_paths(cause.sentence)};
    set_owners(copy, cause.owners);
    causes.push_back(std::move(copy));
  }
  return causes;
}

std::vector<report::PeakCause> causes_of(const std::vector<LiveTensor>& alive) {
  std::map<std::string, std::map<std::string, std::int64_t>> by_category;
  for (const auto& tensor : alive) {
    by_category[tensor.category][tensor.owner.empty() ? "no module" : tensor.owner] += tensor.bytes;
  }
  std::vector<report::PeakCause> causes;
  for (const auto& [category, owners] : by_category) {
    report::PeakCause cause{.category = category, .why = "alive at the peak"};
    for (const auto& [name, bytes] : owners) cause.bytes += static_cast<Bytes>(bytes);
    set_owners(cause, owners);
    cause.sentence = format_bytes(cause.bytes) + " " + category + " of " + std::to_string(owners.size()) +
                     (owners.size() == 1 ? " owner" : " owners") + ", the largest " + cause.owners.front().first +
                     " (" + format_bytes(cause.owners.front().second) + ")";
    causes.push_back(std::move(cause));
  }
  std::stable_sort(causes.begin(), causes.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return causes;
}

}  // namespace plimsoll::plan
