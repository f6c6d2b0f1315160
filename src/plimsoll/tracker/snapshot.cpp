#include "plimsoll/tracker/snapshot.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace plimsoll::inline tracker {

void DeviceSnapshot::add(std::string_view category, std::int64_t bytes) {
  total_ += bytes;
  const auto known = std::ranges::find(categories_, category, &Entry::first);
  if (known != categories_.end()) {
    known->second += bytes;
  } else {
    categories_.emplace_back(category, bytes);
  }
}

std::int64_t DeviceSnapshot::operator[](std::string_view category) const {
  const auto known = std::ranges::find(categories_, category, &Entry::first);
  return known == categories_.end() ? 0 : known->second;
}

bool operator==(const DeviceSnapshot& a, const DeviceSnapshot& b) {
  const auto covers = [](const DeviceSnapshot& x, const DeviceSnapshot& y) {
    return std::ranges::all_of(x.categories_, [&](const auto& entry) { return y[entry.first] == entry.second; });
  };
  return a.total_ == b.total_ && covers(a, b) && covers(b, a);
}

namespace {

void add(Snapshot& into, const Snapshot& what, std::int64_t sign) {
  for (const auto& [device, of_device] : what) {
    auto& there = into[device];
    for (const auto& [category, bytes] : of_device.categories()) there.add(category, sign * bytes);
  }
}

}  // namespace

Snapshot diff(const Snapshot& before, const Snapshot& after) {
  Snapshot result = after;
  add(result, before, -1);
  std::erase_if(result, [](const auto& entry) { return entry.second == DeviceSnapshot(); });
  return result;
}

Snapshot sum(const Snapshot& a, const Snapshot& b) {
  Snapshot result = a;
  add(result, b, 1);
  return result;
}

std::string to_json(const Snapshot& snapshot) {
  auto devices = nlohmann::ordered_json::object();
  for (const auto& [device, of_device] : snapshot) {
    auto& entries = devices[device] = nlohmann::ordered_json::object();
    for (const auto& [category, bytes] : of_device.categories()) entries[category] = bytes;
    entries["Total"] = of_device.total();
  }
  return devices.dump();
}

Snapshot snapshot_from_json(std::string_view text) {
  const auto devices = nlohmann::ordered_json::parse(text);
  Snapshot snapshot;
  for (const auto& [device, entries] : devices.items()) {
    auto& of_device = snapshot[device];
    for (const auto& [category, bytes] : entries.items()) {
      if (category != "Total") of_device.add(category, bytes.get<std::int64_t>());
    }
  }
  return snapshot;
}

}  // namespace plimsoll::inline tracker
