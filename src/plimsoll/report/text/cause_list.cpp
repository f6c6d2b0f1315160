#include "plimsoll/report/text/cause_list.h"

#include <algorithm>

#include "plimsoll/report/text/table.h"

namespace plimsoll::report {
namespace {

constexpr std::size_t kShareWidth = 7;

/// The amount stands in a column of its own, so the sentence goes without.
std::string without_amount(const PeakCause& cause) {
  const std::string amount = format_bytes(cause.bytes) + " ";
  return cause.sentence.starts_with(amount) ? cause.sentence.substr(amount.size()) : cause.sentence;
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, width_of(text)), ' ') + text;
}

}  // namespace

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
    // Blanks before the first word are part of the line's width, and wrapped() breaks at blanks.
    const std::string lines = wrapped(std::string(indent.size(), '.') + without_amount(cause), kLineWidth, indent);
    text += start + lines.substr(indent.size()) + "\n";
  }
  return text;
}

}  // namespace plimsoll::report
