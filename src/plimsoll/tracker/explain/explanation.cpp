#include "plimsoll/tracker/explain/explanation.h"

#include <ostream>

#include "plimsoll/base/bytes.h"
#include "plimsoll/report/text/causes.h"

namespace plimsoll::inline tracker {

std::string to_text(const Explanation& explanation) {
  const auto amount = [](std::int64_t bytes) { return format_bytes(static_cast<Bytes>(bytes)); };
  std::string text = amount(explanation.total) + " on " + explanation.device;
  if (explanation.step != ledger::kNoStep) text += ", in step " + std::to_string(explanation.step);
  if (!explanation.module.empty()) {
    text += ", " + explanation.stage + " of " + explanation.module;
  } else {
    text += ", phase " + explanation.phase;
  }
  if (explanation.reserved != 0) text += " (reserved then: " + amount(explanation.reserved) + ")";
  text += "\n";
  for (const auto& cause : explanation.causes) text += "  " + report::sentence(cause) + "\n";
  return text;
}

std::ostream& operator<<(std::ostream& out, const Explanation& explanation) { return out << to_text(explanation); }

}  // namespace plimsoll::inline tracker
