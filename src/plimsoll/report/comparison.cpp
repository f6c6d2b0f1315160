#include "plimsoll/report/comparison.h"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "plimsoll/report/text/sections.h"

namespace plimsoll::report {
namespace {

using NamedBytes = std::vector<std::pair<std::string, Bytes>>;

/// The names of `a`, then those that only `b` has.
std::vector<BytesChange> paired(const NamedBytes& a, const NamedBytes& b) {
  std::vector<BytesChange> changes;
  std::unordered_map<std::string, std::size_t> places;
  for (const auto& [name, bytes] : a) {
    if (places.emplace(name, changes.size()).second) changes.push_back({name, bytes, std::nullopt});
  }
  for (const auto& [name, bytes] : b) {
    const auto [place, is_new] = places.emplace(name, changes.size());
    if (is_new) changes.push_back({name, std::nullopt, std::nullopt});
    changes[place->second].b = bytes;
  }
  return changes;
}

NamedBytes books(const Report& report) {
  return {{"active", report.peak.active}, {"reserved", report.peak.reserved}, {"device", report.peak.device}};
}

NamedBytes phases(const Report& report) {
  const std::vector<StepRow> rows = step_rows(report);
  NamedBytes all;
  for (const std::string& phase : phases_of(rows)) {
    Bytes highest = 0;
    for (const StepRow& row : rows) {
      const auto found = row.active_by_phase.find(phase);
      if (found != row.active_by_phase.end()) highest = std::max(highest, found->second);
    }
    all.emplace_back(phase, highest);
  }
  return all;
}

NamedBytes categories(const Report& report) {
  NamedBytes all;
  for (const CategoryBytes& entry : report.peak.categories) all.emplace_back(entry.category, entry.bytes);
  return all;
}

NamedBytes modules(const Report& report) {
  NamedBytes all;
  for (const ModuleRow& module : report.modules) all.emplace_back(module.name, module.total);
  return all;
}

std::vector<SettingChange> settings(const JobValues& a, const JobValues& b) {
  std::vector<SettingChange> changes;
  const auto add = [&](const std::string& name) {
    SettingChange change{name, job_value(a, name), job_value(b, name)};
    if (change.a != change.b) changes.push_back(std::move(change));
  };
  for (const auto& [name, value] : a) add(name);
  for (const auto& [name, value] : b) {
    if (std::none_of(a.begin(), a.end(), [&](const auto& known) { return known.first == name; })) add(name);
  }
  return changes;
}

}  // namespace

Comparison compare(NamedReport named_a, NamedReport named_b) {
  const Report& a = named_a.report;
  const Report& b = named_b.report;
  Comparison result;
  result.books = paired(books(a), books(b));
  result.phases = paired(phases(a), phases(b));
  if (a.planned() != nullptr && b.planned() != nullptr) {
    result.settings = settings(a.planned()->job, b.planned()->job);
  }
  if (a.is_attributed() && b.is_attributed()) {
    result.categories = paired(categories(a), categories(b));
    std::stable_sort(result.categories->begin(), result.categories->end(),
                     [](const auto& x, const auto& y) { return std::abs(x.difference()) > std::abs(y.difference()); });
    result.modules = paired(modules(a), modules(b));
    std::erase_if(*result.modules, [](const BytesChange& change) { return change.a == change.b; });
  }
  result.a = std::move(named_a);
  result.b = std::move(named_b);
  return result;
}

}  // namespace plimsoll::report
