#include "plimsoll/plan/causes.h"

#include "plimsoll/plan/paths.h"

namespace plimsoll::plan {

std::string category_name(const std::string& category) { return category == "Optstate" ? "OptState" : category; }

std::vector<report::PeakCause> causes_of(const Explanation& explanation) {
  auto causes = explanation.causes;
  for (auto& cause : causes) {
    cause.category = category_name(cause.category);
    cause.why = with_readable_paths(cause.why);
    for (auto& [name, bytes] : cause.owners) name = with_readable_paths(name);
  }
  return causes;
}

}  // namespace plimsoll::plan
