#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plimsoll/base/bytes.h"

/// Numbers as a reader of a report sees them.
namespace plimsoll::report {

using plimsoll::ByteUnit;
using plimsoll::parse_byte_unit;

/// Writes bytes: in one unit, or without one in the largest that keeps each number at or above one (`format_bytes`).
class Amounts {
 public:
  explicit Amounts(std::optional<ByteUnit> unit = {}) : unit_(unit) {}

  std::string operator()(Bytes bytes) const;
  /// What `after` is more or less: "+1.00 GiB", "-512 B", "0 B".
  std::string change(Bytes before, Bytes after) const;

 private:
  std::optional<ByteUnit> unit_;
};

/// `value` by a format of printf's.
std::string decimal(double value, const char* format);

/// "27.8 %"; "" where the whole is nothing.
std::string share(Bytes part, Bytes whole);

/// "1 step", "4 steps".
std::string counted(std::uint64_t number, const std::string& what);

/// Parameters, as models are named by them: "8.03 B", "124.44 M", "512".
std::string parameter_count(std::uint64_t parameters);

/// "in step 2, backward" without its "in"; `outside` where it was in none.
std::string moment(const std::optional<std::int64_t>& step, const std::string& phase,
                   const std::string& outside = "before the first step");

/// Messages of exceptions may go on for pages; the whole one is in the JSON.
std::string first_line(const std::string& text);

/// `text` without what a terminal would take for orders: documents may be by others.
std::string without_orders(std::string text);

/// How wide text is at the most.
inline constexpr std::size_t kLineWidth = 120;

/// The lines of `text` broken at blanks so that none is wider than `width`, where its words allow; all but the first
/// start with `indent`.
std::string wrapped(const std::string& text, std::size_t width, const std::string& indent);

}  // namespace plimsoll::report
