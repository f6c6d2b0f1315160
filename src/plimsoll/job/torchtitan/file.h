#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/job/toml.h"

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

/// The advice for an unsupported configuration.
inline constexpr const char* kRunInstead = "use `plimsoll run` with the training script itself";

/// A torchtitan configuration with known fields and without unsupported features. find() has the mapped fields by name:
/// "training.seq_len".
class TitanFile {
 public:
  /// Throws FormatError as read_torchtitan. REQUIRES: both arguments outlive this object.
  TitanFile(const toml::Value& root, const std::string& origin);

  const std::string& origin() const { return origin_; }
  const std::vector<std::string>& passed_over() const { return passed_over_; }

  /// Null if the file does not have the field.
  const toml::Value* find(const std::string& field) const;
  // These throw FormatError if the value has another type.
  std::int64_t whole(const std::string& field, const toml::Value& value) const;
  bool boolean(const std::string& field, const toml::Value& value) const;
  const std::string& text(const std::string& field, const toml::Value& value) const;
  [[noreturn]] void fail(const toml::Value& value, const std::string& message) const;

 private:
  void read_table(const std::string& name, const std::string& prefix, const toml::Value& table);
  void read_field(const std::string& table, const std::string& field, const toml::Value& value);
  [[noreturn]] void unknown_table(const std::string& name, const toml::Value& value) const;
  [[noreturn]] void unknown_field(const std::string& table, const std::string& field, const toml::Value& value) const;

  const std::string& origin_;
  std::map<std::string, const toml::Value*> mapped_;
  std::vector<std::string> passed_over_;
};

}  // namespace plimsoll::job
