#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "plimsoll/base/bytes.h"
#include "plimsoll/ledger/ids.h"

namespace plimsoll::ledger {

/// The bytes of one device at one instant: the total, and the bytes of each category. The categories always sum to the
/// total.
///
/// The array has room for all categories, but a copy writes only those that were ever used: peaks are overwritten
/// often, and most runs use eight categories.
class Balance {
 public:
  Balance() = default;
  Balance(const Balance& other) : total_(other.total_), used_(other.used_) { copy_used(other); }
  Balance& operator=(const Balance& other) {
    total_ = other.total_;
    used_ = other.used_;
    copy_used(other);
    return *this;
  }

  Bytes total() const { return total_; }
  Bytes operator[](CategoryId category) const { return value(category) < used_ ? by_category_[value(category)] : 0; }

  /// Indexed by category id. Categories past the end have zero bytes.
  std::span<const Bytes> by_category() const { return {by_category_.data(), used_}; }

  /// REQUIRES: the total stays below 2^64.
  void add(CategoryId category, Bytes bytes) {
    while (used_ <= value(category)) by_category_[used_++] = 0;
    by_category_[value(category)] += bytes;
    total_ += bytes;
  }
  /// REQUIRES: the category has at least `bytes`.
  void subtract(CategoryId category, Bytes bytes) {
    by_category_[value(category)] -= bytes;
    total_ -= bytes;
  }
  /// REQUIRES: `from` has at least `bytes`.
  void move(CategoryId from, CategoryId to, Bytes bytes) {
    subtract(from, bytes);
    add(to, bytes);
  }

  friend bool operator==(const Balance& a, const Balance& b) {
    if (a.total_ != b.total_) return false;
    for (std::size_t i = 0; i < std::max(a.used_, b.used_); ++i) {
      if (a[CategoryId(i)] != b[CategoryId(i)]) return false;
    }
    return true;
  }

 private:
  void copy_used(const Balance& other) { std::copy_n(other.by_category_.begin(), other.used_, by_category_.begin()); }

  Bytes total_ = 0;
  std::uint8_t used_ = 0;  ///< Categories below this number are written; the others are zero and not written.
  std::array<Bytes, kMaxCategories> by_category_;
};

}  // namespace plimsoll::ledger
