#include "plimsoll/job/toml_number.h"

#include <charconv>
#include <limits>

#include "plimsoll/job/values.h"

namespace plimsoll::job::toml {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Whether `text` has the form of `pattern`, in which 0 stands for a digit.
bool has_form(std::string_view text, std::string_view pattern) {
  if (text.size() != pattern.size()) return false;
  for (std::size_t index = 0; index < text.size(); ++index) {
    if (pattern[index] == '0' ? !is_digit(text[index]) : text[index] != pattern[index]) return false;
  }
  return true;
}

/// Two digits, from `least` to `most`.
bool in_range(std::string_view text, int least, int most) {
  const int number = (text[0] - '0') * 10 + (text[1] - '0');
  return least <= number && number <= most;
}

bool is_day(std::string_view text) {
  return looks_like_date(text) && in_range(text.substr(5), 1, 12) && in_range(text.substr(8), 1, 31);
}

bool is_time(std::string_view text) {
  if (!has_form(text.substr(0, 8), "00:00:00")) return false;
  if (!in_range(text, 0, 23) || !in_range(text.substr(3), 0, 59) || !in_range(text.substr(6), 0, 60)) return false;
  text.remove_prefix(8);
  if (text.empty()) return true;
  if (text[0] != '.' || text.size() < 2) return false;
  return text.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

bool is_zone(std::string_view text) {
  if (text == "Z" || text == "z") return true;
  return (has_form(text, "+00:00") || has_form(text, "-00:00")) && in_range(text.substr(1), 0, 23) &&
         in_range(text.substr(4), 0, 59);
}

bool is_date_or_time(std::string_view text) {
  if (is_day(text) || is_time(text)) return true;
  if (text.size() < 11 || !is_day(text.substr(0, 10)) || std::string_view("Tt ").find(text[10]) == std::string::npos) {
    return false;
  }
  text.remove_prefix(11);
  const std::size_t zone = std::min(text.find_first_of("Zz+-"), text.size());
  return is_time(text.substr(0, zone)) && (zone == text.size() || is_zone(text.substr(zone)));
}

/// Takes underscores away that stand between digits of `base`; false where others are there.
bool drop_underscores(std::string& digits, int base) {
  const auto is_one = [&](std::size_t index) {
    const int value = index < digits.size() ? digit_value(digits[index]) : -1;
    return value >= 0 && value < base;
  };
  std::string kept;
  for (std::size_t index = 0; index < digits.size(); ++index) {
    if (digits[index] != '_') {
      kept += digits[index];
    } else if (index == 0 || !is_one(index - 1) || !is_one(index + 1)) {
      return false;
    }
  }
  digits = kept;
  return true;
}

std::string read_integer(std::string digits, int base, bool negative, Value& value, const std::string& wrong) {
  if (!drop_underscores(digits, base) || digits.empty()) return wrong;
  for (const char c : digits) {
    if (const int digit = digit_value(c); digit < 0 || digit >= base) return wrong;
  }
  if (base == 10 && digits.size() > 1 && digits[0] == '0') return "a number with zeros in front: take them away";
  value.kind = Value::Kind::kInteger;
  if (negative) digits.insert(0, "-");
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value.integer, base);
  return error == std::errc() ? "" : "a number beyond 64 bits: " + in_quotes(digits);
}

std::string read_float(std::string digits, bool negative, Value& value, const std::string& wrong) {
  if (!drop_underscores(digits, 10)) return wrong;
  // digits [. digits] [e [sign] digits]
  std::size_t at = 0;
  const auto run = [&] {
    const std::size_t begin = at;
    while (at < digits.size() && is_digit(digits[at])) ++at;
    return at - begin;
  };
  const std::size_t whole = run();
  if (whole == 0) return wrong;
  if (at < digits.size() && digits[at] == '.' && (++at, run() == 0)) return wrong;
  if (at < digits.size() && (digits[at] == 'e' || digits[at] == 'E')) {
    ++at;
    if (at < digits.size() && digits[at] == '+') digits.erase(at, 1);  // from_chars takes no plus.
    if (at < digits.size() && digits[at] == '-') ++at;
    if (run() == 0) return wrong;
  }
  if (at != digits.size()) return wrong;
  if (whole > 1 && digits[0] == '0') return "a number with zeros in front: take them away";
  value.kind = Value::Kind::kFloat;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value.real);
  if (error != std::errc()) return "a number that no double holds: " + in_quotes(digits);
  if (negative) value.real = -value.real;
  return "";
}

}  // namespace

int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return -1;
}

bool looks_like_date(std::string_view text) { return has_form(text, "0000-00-00"); }

std::string read_scalar(const std::string& text, Value& value) {
  const std::string wrong =
      in_quotes(text) + " is no value: a text stands in quotes, others are numbers, true and false";
  if (text == "true" || text == "false") {
    value.kind = Value::Kind::kBoolean;
    value.boolean = text == "true";
    return "";
  }
  if (is_date_or_time(text)) {
    value.kind = Value::Kind::kDate;
    value.text = text;
    return "";
  }
  const bool negative = text[0] == '-';
  const std::string digits = text.substr(negative || text[0] == '+' ? 1 : 0);
  if (digits == "inf" || digits == "nan") {
    value.kind = Value::Kind::kFloat;
    value.real = digits == "inf" ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    if (negative) value.real = -value.real;
    return "";
  }
  if (digits.size() > 2 && digits[0] == '0' && digits.size() == text.size()) {
    const int base = digits[1] == 'x' ? 16 : digits[1] == 'o' ? 8 : digits[1] == 'b' ? 2 : 10;
    if (base != 10) return read_integer(digits.substr(2), base, false, value, wrong);
  }
  if (digits.find_first_of(".eE") != std::string::npos) return read_float(digits, negative, value, wrong);
  return read_integer(digits, 10, negative, value, wrong);
}

}  // namespace plimsoll::job::toml
