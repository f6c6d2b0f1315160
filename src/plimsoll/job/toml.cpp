#include "plimsoll/job/toml.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/errors.h"
#include "plimsoll/base/text.h"

namespace {
struct BrokenAssertion {};
}  // namespace
// toml++ 3.3 asserts in its parser what a wrong text can break, such as `[=`.
#define TOML_ASSERT(expression) ((expression) ? void() : throw BrokenAssertion{})
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>

namespace plimsoll::job::toml {
namespace {

using Kind = Value::Kind;

static_assert(TOML_MAX_NESTED_VALUES == kDeepest);
/// toml++ limits the depth of values, but not of the tables that a dotted key makes. Parser and destructor recurse.
constexpr int kMostDotsOnALine = 256;

[[noreturn]] void fail(const std::string& origin, int line, std::string_view message) {
  throw FormatError(fmt::format("{}:{}: {}", origin, line, message));
}

const std::string& too_deep() {
  static const std::string text = fmt::format("nested deeper than {} levels", kDeepest);
  return text;
}

/// Refuses text that toml++ 3.3 cannot take safely, outside of strings and comments: letters beyond ASCII, for which
/// its behaviour is undefined, and too many dots.
void refuse_unsafe(std::string_view text, const std::string& origin) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  int line = 1;
  int dots = 0;
  std::string_view closing;  // The end of the string or comment.
  while (!text.empty()) {
    const char c = text[0];
    std::size_t taken = 1;
    if (closing.empty()) {
      if (static_cast<unsigned char>(c) >= 0x80) fail(origin, line, "a character beyond ASCII outside of quotes");
      if (c == '.' && ++dots > kMostDotsOnALine) fail(origin, line, too_deep());
      if (c == '#') closing = "\n";
      for (const std::string_view quotes : {"'", "\"", "'''", "\"\"\""}) {
        if (text.starts_with(quotes)) closing = quotes;
      }
      if (c != '#' && !closing.empty()) taken = closing.size();
    } else if (c == '\\' && closing[0] == '"' && !text.substr(1).starts_with('\n')) {
      taken = 2;
    } else if (text.starts_with(closing)) {
      taken = closing.size();
      // One or two quotes may stand before the three that close a string.
      while (taken >= 3 && taken < 5 && text.substr(taken).starts_with(closing[0])) ++taken;
      closing = {};
    } else if (c == '\n' && closing.size() == 1) {
      closing = {};
    }
    if (c == '\n') {
      ++line;
      dots = 0;
    }
    text.remove_prefix(std::min(taken, text.size()));
  }
}

/// The last line of the shortest text that breaks an assertion of the parser.
int line_of_broken_assertion(std::string_view text) {
  std::vector<std::size_t> ends;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\n') ends.push_back(at + 1);
  }
  const auto first = std::partition_point(ends.begin(), ends.end(), [&](std::size_t end) {
    try {
      static_cast<void>(::toml::parse(text.substr(0, end)));
    } catch (const ::toml::parse_error&) {
    } catch (const BrokenAssertion&) {
      return false;
    }
    return true;
  });
  return static_cast<int>(first - ends.begin()) + 1;
}

/// "Error while parsing string: …" becomes "not valid TOML: string: …".
std::string sentence(std::string_view message) {
  if (message.find("maximum nested value depth") != std::string_view::npos) return too_deep();
  constexpr std::string_view kOpening = "Error while parsing ";
  if (message.starts_with(kOpening)) message.remove_prefix(kOpening.size());
  const bool bare_word = message.ends_with("could not determine value type");
  return fmt::format("not valid TOML: {}{}", message, bare_word ? "; put text in quotes" : "");
}

Value converted(const ::toml::node& node, const std::string& origin, int depth) {
  Value value;
  value.line = static_cast<int>(node.source().begin.line);
  if (depth > kDeepest) fail(origin, value.line, too_deep());
  node.visit([&](const auto& found) {
    using Found = std::decay_t<decltype(found)>;
    if constexpr (::toml::is_table<Found>) {
      for (const auto& [key, child] : found) {
        value.table[std::string(key.str())] = std::make_unique<Value>(converted(child, origin, depth + 1));
      }
    } else if constexpr (::toml::is_array<Found>) {
      value.kind = Kind::kArray;
      for (const ::toml::node& child : found) value.array.push_back(converted(child, origin, depth + 1));
    } else if constexpr (::toml::is_string<Found>) {
      value.kind = Kind::kString;
      value.text = found.get();
    } else if constexpr (::toml::is_integer<Found>) {
      value.kind = Kind::kInteger;
      value.integer = found.get();
    } else if constexpr (::toml::is_floating_point<Found>) {
      value.kind = Kind::kFloat;
      value.real = found.get();
    } else if constexpr (::toml::is_boolean<Found>) {
      value.kind = Kind::kBoolean;
      value.boolean = found.get();
    } else {
      value.kind = Kind::kDate;
    }
  });
  return value;
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  const auto found = table.find(key);
  return found == table.end() ? nullptr : found->second.get();
}

const char* name(Value::Kind kind) {
  constexpr const char* kNames[] = {"a text", "a whole number", "a number", "true or false",
                                    "a date", "an array",       "a table"};
  return kNames[static_cast<std::size_t>(kind)];
}

Value parse(std::string_view text, const std::string& origin) {
  if (text.size() > kMostBytes) throw FormatError(origin + ": is larger than 1 MiB");
  refuse_unsafe(text, origin);
  try {
    return converted(::toml::parse(text), origin, 0);
  } catch (const ::toml::parse_error& error) {
    fail(origin, static_cast<int>(error.source().begin.line), sentence(error.description()));
  } catch (const BrokenAssertion&) {
    fail(origin, line_of_broken_assertion(text), "not valid TOML");
  }
}

Value parse_file(const std::filesystem::path& path) {
  return parse(read_file(path, kMostBytes, "TOML file", "a TOML file that describes a job"), path.string());
}

}  // namespace plimsoll::job::toml
