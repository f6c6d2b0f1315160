#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The bytes of each device by category at one instant, as values.

namespace plimsoll::inline tracker {

/// Bytes of one device by category, in the order of the categories. The entries sum to the total.
///
/// Signed, because the difference of two snapshots is a snapshot too.
class DeviceSnapshot {
 public:
  using Entry = std::pair<std::string, std::int64_t>;

  /// Adds to the category and to the total. Adds the category if it is new.
  void add(std::string_view category, std::int64_t bytes);

  const std::vector<Entry>& categories() const { return categories_; }
  std::int64_t total() const { return total_; }
  /// 0 for an absent category.
  std::int64_t operator[](std::string_view category) const;

  /// Equal in every category; an absent one counts as 0.
  friend bool operator==(const DeviceSnapshot& a, const DeviceSnapshot& b);

 private:
  std::vector<Entry> categories_;
  std::int64_t total_ = 0;
};

/// The devices that hold anything, by name ("cpu", "cuda:0").
using Snapshot = std::map<std::string, DeviceSnapshot>;

/// `after` minus `before`, by device and category. Leaves out devices without a difference.
Snapshot diff(const Snapshot& before, const Snapshot& after);

/// Category by category.
Snapshot sum(const Snapshot& a, const Snapshot& b);

/// {"cuda:0": {"Parameter": 4096, …, "Total": 8192}}
std::string to_json(const Snapshot& snapshot);
/// The inverse. Throws for text that is not such an object.
Snapshot snapshot_from_json(std::string_view text);

}  // namespace plimsoll::inline tracker
