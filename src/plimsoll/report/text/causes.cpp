#include <algorithm>

#include "plimsoll/base/categories.h"
#include "plimsoll/report/text/sections.h"
#include "plimsoll/report/text/table.h"

namespace plimsoll::report {
namespace {

constexpr std::size_t kShareWidth = 7;

/// " of A", " of A (1.00 GiB) and B (0.50 GiB)", " of 32 modules, 0.39 GiB each (A … Z)", " of 3 modules, the largest A
/// (1.00 GiB)"; then the bytes of no module.
std::string of_owners(const PeakCause& cause) {
  auto owners = cause.owners;
  const auto unowned = std::ranges::find(owners, kNoModule, [](const auto& owner) { return owner.first; });
  std::string rest;
  if (unowned != owners.end()) {
    rest = ", and " + format_bytes(unowned->second) + " of no module";
    owners.erase(unowned);
  }
  if (owners.empty()) return "";
  const auto& [name, bytes] = owners.front();
  const std::string largest = name + " (" + format_bytes(bytes) + ")";
  if (owners.size() == 1) return " of " + name + rest;
  if (owners.size() == 2) {
    return " of " + largest + " and " + owners[1].first + " (" + format_bytes(owners[1].second) + ")" + rest;
  }
  const std::string count = " of " + std::to_string(owners.size()) + " modules, ";
  if (std::ranges::all_of(owners, [&](const auto& owner) { return owner.second == bytes; })) {
    return count + format_bytes(bytes) + " each (" + name + " … " + owners.back().first + ")" + rest;
  }
  return count + "the largest " + largest + rest;
}

/// The sentence without the amount.
std::string clause(const PeakCause& cause) {
  std::string text = cause.category + of_owners(cause);
  if (!cause.why.empty()) text += ": " + cause.why;
  if (cause.category == category::kTemp.name) {
    text += " (" + counted(cause.allocations, "allocation") + (cause.one_per_shard ? ", one for each shard)" : ")");
  }
  return text + ".";
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, width_of(text)), ' ') + text;
}

}  // namespace

std::string sentence(const PeakCause& cause) { return format_bytes(cause.bytes) + " " + clause(cause); }

std::string cause_list(const std::vector<PeakCause>& causes, Bytes active, const std::string& when,
                       const Amounts& amounts) {
  if (causes.empty()) return "";
  std::size_t amount_width = 0;
  for (const PeakCause& cause : causes) amount_width = std::max(amount_width, width_of(amounts(cause.bytes)));
  std::string text = "\nThe peak, cause by cause: " + amounts(active) + " active; " + when + "\n";
  const std::string indent(2 + amount_width + 2 + kShareWidth + 2, ' ');
  for (const PeakCause& cause : causes) {
    const std::string start =
        "  " + right(amounts(cause.bytes), amount_width) + "  " + right(share(cause.bytes, active), kShareWidth) + "  ";
    // wrapped() breaks at spaces, so dots hold the place of the columns on the first line.
    const std::string lines = wrapped(std::string(indent.size(), '.') + clause(cause), kLineWidth, indent);
    text += start + lines.substr(indent.size()) + "\n";
  }
  return text;
}

}  // namespace plimsoll::report
