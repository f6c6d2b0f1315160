#pragma once

#include <string>
#include <string_view>

#include "plimsoll/job/toml.h"

namespace plimsoll::job::toml {

/// Of 0-9, a-z and A-Z; -1 for others.
int digit_value(char c);

/// Whether `text` has the form of a day: 1979-05-27.
bool looks_like_date(std::string_view text);

/// Reads a boolean, number, date or time into `value`; what is wrong with it, or "".
std::string read_scalar(const std::string& text, Value& value);

}  // namespace plimsoll::job::toml
