#include "plimsoll/plan/causes.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/plan/paths.h"

namespace plimsoll::plan {

std::string category_name(const std::string& category) { return category == "Optstate" ? "OptState" : category; }

namespace {

std::string renamed(const Cause& cause) {
  auto sentence = cause.sentence;
  const auto place = sentence.find(cause.category);
  return place == std::string::npos ? sentence
                                    : sentence.replace(place, cause.category.size(), category_name(cause.category));
}

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
                           .category = category_name(cause.category),
                           .why = with_readable_paths(cause.why),
                           .sentence = with_readable_paths(renamed(cause))};
    set_owners(copy, cause.owners);
    causes.push_back(std::move(copy));
  }
  return causes;
}

}  // namespace plimsoll::plan
