#include "plimsoll/tracker/explain/moments.h"

#include <algorithm>
#include <cstddef>

namespace plimsoll::inline tracker {

Snapshot snapshot_of(const ledger::Ledger& ledger) {
  Moments moments;
  return moments.at(moments.add(ledger), ledger);
}

Snapshot snapshot_of(const std::vector<ledger::Peak>& peaks, const ledger::Ledger& ledger) {
  Moments moments;
  return moments.at(moments.add(peaks, ledger), ledger);
}

Moments::Place Moments::add(const ledger::Ledger& ledger) {
  const auto place = packed_.size();
  packed_.push_back(ledger.devices());
  for_each_device(ledger, [&](auto device) { add_device(device, ledger.balance(device), ledger.categories()); });
  return place;
}

Moments::Place Moments::add(const std::vector<ledger::Peak>& peaks, const ledger::Ledger& ledger) {
  const auto place = packed_.size();
  packed_.push_back(peaks.size());
  for (const auto& peak : peaks) add_device(peak.device, peak.balance, ledger.categories());
  return place;
}

void Moments::add_device(ledger::DeviceId device, const ledger::Balance& balance, std::size_t categories) {
  const auto place = packed_.size();
  packed_.resize(place + 2 + categories);  // with zeros
  packed_[place] = ledger::value(device);
  packed_[place + 1] = categories;
  std::ranges::copy(balance.by_category(), packed_.begin() + static_cast<std::ptrdiff_t>(place) + 2);
}

Snapshot Moments::at(Place place, const ledger::Ledger& ledger) const {
  Snapshot snapshot;
  const auto* next = packed_.data() + place;
  for (auto devices = *next++; devices > 0; --devices) {
    const ledger::DeviceId device{static_cast<std::uint16_t>(*next++)};
    const auto categories = *next++;
    DeviceSnapshot of_device;
    for (std::size_t index = 0; index < categories; ++index) {
      of_device.add(ledger.name(ledger::CategoryId{static_cast<std::uint8_t>(index)}),
                    static_cast<std::int64_t>(*next++));
    }
    if (of_device.total() != 0) snapshot.emplace(ledger.name(device), std::move(of_device));
  }
  return snapshot;
}

}  // namespace plimsoll::inline tracker
