#include "plimsoll/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>
#include <sstream>

#include "plimsoll/base/errors.h"
#include "plimsoll/base/nearest.h"
#include "plimsoll/cli/usage.h"
#include "plimsoll/job/model.h"
#include "plimsoll/job/values.h"

namespace plimsoll::cli {
namespace {

using Takes = OptionShape::Takes;

/// CLI11 does not know of the words, which are what it leaves over.
class ShapeFormatter : public CLI::Formatter {
 public:
  explicit ShapeFormatter(const CommandShape& shape)
      : usage_("Usage: plimsoll " + shape.name + (shape.words.empty() ? "" : " " + shape.words) + " [OPTIONS]\n") {
    column_width(34);
  }

  std::string make_usage(const CLI::App*, std::string) const override { return usage_; }
  /// As the shape has it: CLI11 would add what it thinks of its type.
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string form = option->get_type_name();
    return form.empty() ? "" : " " + form;
  }

 private:
  std::string usage_;
};

bool is_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

/// "true", or a list of such words for a sweep.
bool is_boolean(const std::string& word) {
  static const std::vector<std::string> kWords = {"true", "false", "yes", "no", "on", "off", "1", "0"};
  std::string one;
  std::istringstream list(word);
  bool any = false;
  while (std::getline(list, one, word.find(';') == std::string::npos ? ',' : ';')) {
    if (std::find(kWords.begin(), kWords.end(), job::lower(one)) == kWords.end()) return false;
    any = true;
  }
  return any;
}

bool belongs_to(const OptionShape& option, const std::string& next) {
  switch (option.takes) {
    case Takes::kBoolean:
      return is_boolean(next);
    case Takes::kFile:
      return !is_option(next) && !job::is_model_name(next);
    case Takes::kValue:
      return true;
    case Takes::kNothing:
      break;
  }
  return false;
}

const OptionShape* find_option(const CommandShape& shape, const std::string& name) {
  const auto found = std::find_if(shape.options.begin(), shape.options.end(),
                                  [&](const OptionShape& option) { return option.name == name; });
  return found == shape.options.end() ? nullptr : &*found;
}

/// Gives every option that can do without a value one: CLI11 would take the next word, whatever it is. What is missing
/// or there twice is told here, as CLI11 has words of its own for it. Throws InvalidArgument.
std::vector<std::string> with_values(const CommandShape& shape, const std::vector<std::string>& arguments) {
  std::vector<std::string> result;
  std::set<std::string> seen;
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    const std::string name = arguments[at].substr(0, arguments[at].find('='));
    const OptionShape* option = find_option(shape, name);
    result.push_back(arguments[at]);
    if (option == nullptr) continue;
    if (!seen.insert(name).second) throw InvalidArgument(name + " is there twice: give it once");
    if (option->takes == Takes::kNothing || name != arguments[at]) continue;
    if (at + 1 < arguments.size() && belongs_to(*option, arguments[at + 1])) {
      if (find_option(shape, arguments[at + 1]) != nullptr) {
        throw InvalidArgument(name + " needs a value (" + option->form + ") before " + arguments[at + 1]);
      }
      result.push_back(arguments[++at]);
    } else if (option->takes == Takes::kValue) {
      throw InvalidArgument(name + " needs a value: " + option->form);
    } else {
      result.push_back(option->takes == Takes::kBoolean ? "true" : "-");
    }
  }
  return result;
}

/// Parses with `app`, and returns what there is to say.
std::optional<Answer> parse(CLI::App& app, const CommandShape& shape, const std::vector<std::string>& arguments) {
  try {
    std::vector<std::string> words = with_values(shape, arguments);
    std::reverse(words.begin(), words.end());  // the order that CLI11 asks for
    app.parse(words);
    return std::nullopt;
  } catch (const InvalidArgument& error) {
    return bad_usage(error.what(), shape.name);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return bad_usage(error.what(), shape.name);
    std::ostringstream text;
    app.exit(error, text, text);
    return Answer{0, text.str()};
  }
}

std::optional<Answer> check_words(const CommandShape& shape, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (!is_option(word)) continue;
    std::vector<std::string> names;
    for (const OptionShape& option : shape.options) names.push_back(option.name);
    const std::string meant = did_you_mean(word.substr(0, word.find('=')), names);
    return bad_usage("unknown option " + job::in_quotes(word) + (meant.empty() ? "" : ": " + meant), shape.name);
  }
  if (words.size() <= shape.most_words) return std::nullopt;
  const std::string surplus = job::in_quotes(words[shape.most_words]);
  if (shape.most_words == 0) return bad_usage("plimsoll " + shape.name + " takes no " + surplus, shape.name);
  return bad_usage("one word too many: " + surplus + " after " + job::in_quotes(words[shape.most_words - 1]) +
                       " (expected: " + shape.words + ")",
                   shape.name);
}

}  // namespace

std::optional<std::string> CommandWords::option(const std::string& name) const {
  const auto found = options.find(name);
  return found == options.end() ? std::nullopt : std::optional(found->second);
}

std::variant<CommandWords, Answer> parse_words(const CommandShape& shape, const std::vector<std::string>& arguments) {
  CLI::App app(shape.about, "plimsoll " + shape.name);
  app.formatter(std::make_shared<ShapeFormatter>(shape));
  app.footer(shape.footer);
  app.allow_extras();
  std::map<std::string, std::string> values;
  std::map<std::string, bool> flags;
  for (const OptionShape& option : shape.options) {
    if (option.takes == Takes::kNothing) {
      app.add_flag(option.name, flags[option.name], option.help)->group(option.group);
    } else {
      app.add_option(option.name, values[option.name], option.help)->type_name(option.form)->group(option.group);
    }
  }
  if (const auto answer = parse(app, shape, arguments)) return *answer;
  CommandWords result{.words = app.remaining(), .options = {}};
  if (const auto answer = check_words(shape, result.words)) return *answer;
  for (const OptionShape& option : shape.options) {
    if (app.count(option.name) == 0) continue;
    result.options[option.name] = option.takes == Takes::kNothing ? "true" : values[option.name];
  }
  return result;
}

}  // namespace plimsoll::cli
