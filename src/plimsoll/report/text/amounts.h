#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plimsoll/base/bytes.h"

/// Numbers in the text of a report.
namespace plimsoll::report {

using plimsoll::ByteUnit;
using plimsoll::parse_byte_unit;

/// Writes bytes in one unit, or without a unit as `format_bytes` does.
class Amounts {
 public:
  explicit Amounts(std::optional<ByteUnit> unit = {}) : unit_(unit) {}

  std::string operator()(Bytes bytes) const;
  /// The difference: "+1.00 GiB", "-512 B", "0 B".
  std::string change(Bytes before, Bytes after) const;

 private:
  std::optional<ByteUnit> unit_;
};

/// `value` by a format of printf's.
std::string decimal(double value, const char* format);

/// "27.8 %"; "" if the whole is 0.
std::string share(Bytes part, Bytes whole);

/// "1 step", "4 steps".
std::string counted(std::uint64_t number, const std::string& what);

/// A number of parameters: "8.03 B", "124.44 M", "512".
std::string parameter_count(std::uint64_t parameters);

/// "step 2, backward"; `outside` without a step.
std::string moment(const std::optional<std::int64_t>& step, const std::string& phase,
                   const std::string& outside = "before the first step");

/// A message of an exception may have pages; the JSON has all of it.
std::string first_line(const std::string& text);

/// At most `most` bytes of `text`, for a table; the JSON has all of it.
std::string excerpt(const std::string& text, std::size_t most);

/// `text` without control characters, which a terminal would obey: a document may come from others.
std::string strip_control_chars(std::string text);

/// The maximum width of text.
inline constexpr std::size_t kLineWidth = 120;

/// Breaks `text` at spaces into lines of at most `width`, if its words allow; all lines but the first start with
/// `indent`.
std::string wrapped(const std::string& text, std::size_t width, const std::string& indent);

}  // namespace plimsoll::report
