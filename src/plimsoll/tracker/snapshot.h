#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Where the memory stood at one instant: plain values, to be kept, compared, summed and written.

namespace plimsoll {

/// Bytes of one device by category, in the order of the categories. The entries sum to the total.
///
/// Signed, because the difference of two snapshots is a snapshot too.
class DeviceSnapshot {
 public:
  using Entry = std::pair<std::string, std::int64_t>;

  /// Adds to the category, which need not be there yet, and to the total.
  void add(std::string_view category, std::int64_t bytes);

  const std::vector<Entry>& categories() const { return categories_; }
  std::int64_t total() const { return total_; }
  /// 0 for a category that is not there.
  std::int64_t operator[](std::string_view category) const;

  /// Equal in every category; one that is not there counts as 0.
  friend bool operator==(const DeviceSnapshot& a, const DeviceSnapshot& b);

 private:
  std::vector<Entry> categories_;
  std::int64_t total_ = 0;
};

/// The devices that hold anything, by name ("cpu", "cuda:0").
using Snapshot = std::map<std::string, DeviceSnapshot>;

/// What `after` has more than `before`, by device and category. Devices without a difference are left out.
Snapshot diff(const Snapshot& before, const Snapshot& after);

/// Category by category.
Snapshot sum(const Snapshot& a, const Snapshot& b);

/// {"cuda:0": {"Parameter": 4096, …, "Total": 8192}}
std::string to_json(const Snapshot& snapshot);
/// The inverse. Throws for text that is not such an object.
Snapshot snapshot_from_json(std::string_view text);

}  // namespace plimsoll
