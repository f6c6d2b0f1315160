#pragma once

#include <span>
#include <string>
#include <string_view>

namespace plimsoll::job {

/// The meaning of a torchtitan field for `plan`.
enum class TitanMeaning {
  kUnknown,
  kPassedOver,  ///< No effect on memory.
  kMapped,
  kMustBeOne,    ///< A degree of unsupported parallelism.
  kMustBeFalse,  ///< A switch for an unsupported feature.
  kMustBeEmpty,  ///< A list or text that asks for an unsupported feature.
};

/// `field` has dots for nested tables.
TitanMeaning meaning_of(std::string_view table, std::string_view field);

/// The fields of a table by their meaning, as names separated by spaces.
struct TitanTable {
  std::string_view name;
  std::string_view mapped;
  std::string_view passed_over;
  std::string_view must_be_one = {};
  std::string_view must_be_false = {};
  std::string_view must_be_empty = {};
};
std::span<const TitanTable> titan_tables();
const TitanTable* find_titan_table(std::string_view name);

}  // namespace plimsoll::job
