#include "plimsoll/ledger/history.h"

namespace plimsoll::ledger {

void History::collect(std::vector<Sequence> kept, Sequence now) {
  std::sort(kept.begin(), kept.end());
  std::erase_if(versions_, [&](const Version& version) {
    const auto instant = std::lower_bound(kept.begin(), kept.end(), version.begin);
    return instant == kept.end() || !version.covers(*instant);
  });
  newest_ = kept.empty() ? Sequence{} : kept.back();
  collected_ = now;
  // The kept instants count too: to search N instants must cost no more than N events.
  collect_at_ = 2 * (versions_.size() + kept.size()) + kLeastCollection;
}

}  // namespace plimsoll::ledger
