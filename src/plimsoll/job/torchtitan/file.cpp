#include "plimsoll/job/torchtitan/file.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/errors.h"
#include "plimsoll/base/text.h"
#include "plimsoll/job/torchtitan/fields.h"
#include "plimsoll/job/values.h"

namespace plimsoll::job {
namespace {

using TomlKind = toml::Value::Kind;

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(' '));
    if (!one.empty() && !one.ends_with("*")) result.emplace_back(one);
    text.remove_prefix(std::min(one.size() + 1, text.size()));
  }
  return result;
}

std::string nearest_or_all(const std::string& word, const std::vector<std::string>& known) {
  const std::string meant = did_you_mean(word, known);
  return meant.empty() ? "it has " + listed(known) : meant;
}

}  // namespace

TitanFile::TitanFile(const toml::Value& root, const std::string& origin) : origin_(origin) {
  for (const auto& [name, value] : root.table) {
    if (value->kind != TomlKind::kTable) {
      fail(*value, in_quotes(name) +
                       " is outside of a table: a torchtitan file has only tables, and a file of our form has none");
    }
    if (find_titan_table(name) == nullptr) unknown_table(name, *value);
    read_table(name, "", *value);
  }
}

const toml::Value* TitanFile::find(const std::string& field) const {
  const auto found = mapped_.find(field);
  return found == mapped_.end() ? nullptr : found->second;
}

std::int64_t TitanFile::whole(const std::string& field, const toml::Value& value) const {
  if (value.kind != TomlKind::kInteger) fail(value, field + " must be a whole number, found " + toml::name(value.kind));
  return value.integer;
}

bool TitanFile::boolean(const std::string& field, const toml::Value& value) const {
  if (value.kind != TomlKind::kBoolean) fail(value, field + " must be true or false, found " + toml::name(value.kind));
  return value.boolean;
}

const std::string& TitanFile::text(const std::string& field, const toml::Value& value) const {
  if (value.kind != TomlKind::kString) fail(value, field + " must be a text, found " + toml::name(value.kind));
  return value.text;
}

void TitanFile::fail(const toml::Value& value, const std::string& message) const {
  throw FormatError(fmt::format("{}:{}: {}", origin_, value.line, message));
}

void TitanFile::read_table(const std::string& name, const std::string& prefix, const toml::Value& table) {
  for (const auto& [key, value] : table.table) {
    if (value->kind == TomlKind::kTable) {
      read_table(name, prefix + key + ".", *value);
    } else {
      read_field(name, prefix + key, *value);
    }
  }
}

void TitanFile::read_field(const std::string& table, const std::string& field, const toml::Value& value) {
  const std::string full = table + "." + field;
  switch (meaning_of(table, field)) {
    case TitanMeaning::kMapped:
      mapped_[full] = &value;
      return;
    case TitanMeaning::kPassedOver:
      passed_over_.push_back(full);
      return;
    case TitanMeaning::kMustBeOne:
      if (whole(full, value) == 1) return;
      fail(value, fmt::format("{} is {}, and `plan` supports only FSDP2 and HSDP: set it to 1, or {}", full,
                              value.integer, kRunInstead));
    case TitanMeaning::kMustBeFalse:
      if (!boolean(full, value)) return;
      fail(value, fmt::format("{} is true, and `plan` runs torch eagerly: set it to false, or {}", full, kRunInstead));
    case TitanMeaning::kMustBeEmpty:
      if ((value.kind == TomlKind::kArray || value.kind == TomlKind::kString) && value.array.empty() &&
          value.text.empty())
        return;
      fail(value,
           fmt::format("{} is not empty, and `plan` does not support converted models (float8 and others): empty "
                       "it, or {}",
                       full, kRunInstead));
    case TitanMeaning::kUnknown:
      unknown_field(table, field, value);
  }
}

void TitanFile::unknown_table(const std::string& name, const toml::Value& value) const {
  std::vector<std::string> names;
  for (const TitanTable& table : titan_tables()) names.emplace_back(table.name);
  fail(value, "torchtitan has no table " + in_quotes(name) + ": " + nearest_or_all(name, names));
}

void TitanFile::unknown_field(const std::string& table, const std::string& field, const toml::Value& value) const {
  const TitanTable& known = *find_titan_table(table);
  std::vector<std::string> names;
  for (const auto list :
       {known.mapped, known.must_be_one, known.must_be_false, known.must_be_empty, known.passed_over}) {
    for (std::string& word : words(list)) names.push_back(std::move(word));
  }
  fail(value,
       fmt::format("torchtitan has no field {} in [{}]: {}", in_quotes(field), table, nearest_or_all(field, names)));
}

}  // namespace plimsoll::job
