#pragma once

#include <span>
#include <string>
#include <string_view>

namespace plimsoll::job {

/// What a field of torchtitan's means here.
enum class TitanMeaning {
  kUnknown,
  kPassedOver,  ///< It does not change memory.
  kMapped,
  kMustBeOne,    ///< A degree of parallelism that is not planned here.
  kMustBeFalse,  ///< A switch that makes another program of it.
  kMustBeEmpty,  ///< A list or text, the same.
};

/// `field` may have dots, for tables in tables.
TitanMeaning meaning_of(std::string_view table, std::string_view field);

/// Of a table; empty where torchtitan has none of that name. Names separated by spaces.
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
