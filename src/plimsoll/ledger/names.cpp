#include "plimsoll/ledger/names.h"

#include "plimsoll/base/errors.h"

namespace plimsoll::ledger {
namespace {

constexpr std::string_view kNobody[] = {""};

std::span<const std::string_view> built_in(NameKind kind) {
  switch (kind) {
    case NameKind::kDevice:
      return {};
    case NameKind::kCategory:
      return categories::kNames;
    case NameKind::kOwner:
      return kNobody;
    case NameKind::kPhase:
      return phases::kNames;
  }
  throw InternalError("unknown kind of name: " + std::to_string(static_cast<int>(kind)));
}

}  // namespace

NameTable::NameTable(std::string_view what, std::size_t limit, std::span<const std::string_view> built_in)
    : what_(what), limit_(limit) {
  for (const std::string_view name : built_in) intern(name);
}

NameTable::Interned NameTable::intern(std::string_view name) {
  if (const auto known = indices_.find(name); known != indices_.end()) return {known->second, false};
  if (full()) {
    throw InvalidArgument("a ledger has at most " + std::to_string(limit_) + " " + std::string(what_) + ", but '" +
                          std::string(name) + "' would be one more; use fewer names");
  }
  const std::size_t index = names_.size();
  indices_.emplace(names_.emplace_back(name), index);
  return {index, true};
}

std::string_view NameTable::name(std::size_t index) const {
  if (index >= names_.size()) {
    throw InvalidArgument("no entry has number " + std::to_string(index) + " among the " +
                          std::to_string(names_.size()) + " " + std::string(what_) +
                          " of this ledger; use only ids from this ledger");
  }
  return names_[index];
}

std::size_t built_in_names(NameKind kind) { return built_in(kind).size(); }

Names::Names()
    : tables_{{"devices", kMaxDevices, built_in(NameKind::kDevice)},
              {"categories", kMaxCategories, built_in(NameKind::kCategory)},
              {"owners", ~std::uint32_t{0}, built_in(NameKind::kOwner)},
              {"phases", kMaxPhases, built_in(NameKind::kPhase)}} {}

}  // namespace plimsoll::ledger
