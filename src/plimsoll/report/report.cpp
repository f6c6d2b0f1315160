#include "plimsoll/report/report.h"

#include <algorithm>

#include "plimsoll/report/text/amounts.h"

namespace plimsoll::report {

bool StepPeaks::same_peaks(const StepPeaks& other) const {
  return active_peak == other.active_peak && allocated_peak == other.allocated_peak &&
         reserved_peak == other.reserved_peak && phases == other.phases;
}

JobValue job_value(const JobValues& job, std::string_view name) {
  const std::string wanted = underscored(std::string(name));
  for (const auto& [known, value] : job) {
    if (underscored(known) == wanted) return value;
  }
  return nullptr;
}

std::string shown(const JobValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "yes" : "no";
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* number = std::get_if<double>(&value)) return decimal(*number, "%g");
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "none";
}

std::string underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace plimsoll::report
