#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "plimsoll/ledger/ids.h"

namespace plimsoll::ledger {

/// Names and their indices, in the order of first use. Move-only.
class NameTable {
 public:
  /// `what` is the plural for messages.
  NameTable(std::string_view what, std::size_t limit, std::span<const std::string_view> built_in);
  NameTable(NameTable&&) noexcept = default;
  NameTable& operator=(NameTable&&) noexcept = default;

  struct Interned {
    std::size_t index;
    bool is_new;
  };
  /// Throws InvalidArgument if the table is full.
  Interned intern(std::string_view name);
  /// Throws InvalidArgument if no name has that index.
  std::string_view name(std::size_t index) const;
  std::size_t count() const { return names_.size(); }
  bool full() const { return names_.size() >= limit_; }
  std::string_view what() const { return what_; }

 private:
  std::string_view what_;
  std::size_t limit_;
  std::deque<std::string> names_;  // A deque, because the keys below point into it.
  std::unordered_map<std::string_view, std::size_t> indices_;
};

enum class NameKind : std::uint8_t { kDevice, kCategory, kOwner, kPhase };
inline constexpr std::size_t kNameKinds = 4;
/// The number of built-in names of a kind.
std::size_t built_in_names(NameKind kind);

/// The names of one ledger.
class Names {
 public:
  Names();
  NameTable& operator[](NameKind kind) { return tables_[static_cast<std::size_t>(kind)]; }
  const NameTable& operator[](NameKind kind) const { return tables_[static_cast<std::size_t>(kind)]; }

 private:
  NameTable tables_[kNameKinds];
};

}  // namespace plimsoll::ledger
