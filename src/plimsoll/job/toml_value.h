#pragma once

#include <string>

#include "plimsoll/base/errors.h"
#include "plimsoll/job/fields.h"
#include "plimsoll/job/toml.h"

namespace plimsoll::job {

/// A TOML value as the value of a field. Throws InvalidArgument that names `key` for a table, an array and a date.
inline Value plain_value(const std::string& key, const toml::Value& value) {
  switch (value.kind) {
    case toml::Value::Kind::kString:
      return value.text;
    case toml::Value::Kind::kInteger:
      return value.integer;
    case toml::Value::Kind::kFloat:
      return value.real;
    case toml::Value::Kind::kBoolean:
      return value.boolean;
    default:
      throw InvalidArgument("'" + key + "' must be a text, a number, true or false, found " + toml::name(value.kind));
  }
}

/// Runs `action`. An InvalidArgument becomes a FormatError that begins with the file and the line of `value`.
template <class Action>
void at_line(const std::string& origin, const toml::Value& value, Action action) {
  try {
    action();
  } catch (const InvalidArgument& error) {
    throw FormatError(origin + ":" + std::to_string(value.line) + ": " + error.what());
  }
}

}  // namespace plimsoll::job
