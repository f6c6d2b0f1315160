#include "plimsoll/job/axes.h"

#include <algorithm>

#include "plimsoll/base/errors.h"
#include "plimsoll/base/text.h"
#include "plimsoll/job/values.h"

namespace plimsoll::job {
namespace {

/// Adds a value as the field writes it, so that two spellings of one value are equal.
void add(Axis& axis, const std::string& text) {
  Job scratch;
  axis.field->set(scratch, text);
  const std::string value = axis.field->get(scratch).value_or("");
  axis.values.push_back(value);
  if (axis.values.size() > kMostCombinations) {
    throw InvalidArgument(axis.field->flag() + " has more than " + std::to_string(kMostCombinations) +
                          " values, the limit of a sweep");
  }
}

/// "1..8" or "1..64*2".
void add_range(Axis& axis, std::string_view text, std::size_t dots) {
  const std::string what = axis.field->flag() + " " + in_quotes(text) + ":";
  const std::size_t star = std::min(text.find('*', dots), text.size());
  const std::int64_t first = parse_whole(what + " the first value", text.substr(0, dots), 0);
  const std::int64_t last = parse_whole(what + " the last value", text.substr(dots + 2, star - dots - 2), 0);
  const std::int64_t factor = star == text.size() ? 1 : parse_whole(what + " the factor", text.substr(star + 1), 2);
  if (last < first) throw InvalidArgument(what + " the first value must not be above the last, as in 1..8");
  if (first == 0 && factor > 1) throw InvalidArgument(what + " begin at 1, because 0 cannot be multiplied");
  // Never above 2^31 × 2^31.
  for (std::int64_t value = first; value <= last; value = factor > 1 ? value * factor : value + 1) {
    add(axis, std::to_string(value));
  }
}

void refuse_twice(const Axis& axis) {
  std::vector<std::string> sorted = axis.values;
  std::sort(sorted.begin(), sorted.end());
  const auto twin = std::adjacent_find(sorted.begin(), sorted.end());
  if (twin != sorted.end()) throw InvalidArgument(axis.field->flag() + " has " + in_quotes(*twin) + " twice");
}

}  // namespace

Axis parse_axis(std::string_view field, std::string_view text) {
  Axis axis{.field = &find_field(field)};
  const bool only_semicolons = axis.field->name == "alloc-conf" || text.find(';') != std::string_view::npos;
  const char separator = only_semicolons ? ';' : ',';
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    const std::string_view one = text.substr(begin, end - begin);
    if (one.empty()) {
      throw InvalidArgument(axis.field->flag() +
                            " expects values separated by commas, as in 1,2,4, found an empty value in " +
                            in_quotes(text));
    }
    const std::size_t dots = one.find("..");
    if (axis.field->kind == Field::Kind::kInteger && dots != std::string_view::npos) {
      add_range(axis, one, dots);
    } else {
      add(axis, std::string(one));
    }
    begin = end + 1;
  }
  refuse_twice(axis);
  return axis;
}

std::vector<Job> combinations(const Job& base, std::span<const Axis> axes) {
  std::size_t count = 1;
  std::string product;
  for (std::size_t index = 0; index < axes.size(); ++index) {
    for (std::size_t before = 0; before < index; ++before) {
      if (axes[before].field == axes[index].field) {
        throw InvalidArgument(axes[index].field->flag() + " is given twice: give all values in one list");
      }
    }
    // Each factor is at most kMostCombinations, so the product of the two fits.
    count = std::min(count * axes[index].values.size(), kMostCombinations + 1);
    product += (index == 0 ? "" : " × ") + std::to_string(axes[index].values.size());
  }
  if (count > kMostCombinations) {
    throw InvalidArgument("the sweep has " + product + " combinations, and the limit is " +
                          std::to_string(kMostCombinations) + ": give fewer values");
  }
  std::vector<Job> jobs = {base};
  for (const Axis& axis : axes) {
    std::vector<Job> more;
    more.reserve(jobs.size() * axis.values.size());
    for (const Job& job : jobs) {
      for (const std::string& value : axis.values) axis.field->set(more.emplace_back(job), value);
    }
    jobs = std::move(more);
  }
  return jobs;
}

}  // namespace plimsoll::job
