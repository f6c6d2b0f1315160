#pragma once

#include <map>
#include <string>
#include <vector>

#include "plimsoll/job/toml.h"

namespace plimsoll::job {

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
