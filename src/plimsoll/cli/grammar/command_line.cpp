#include "plimsoll/cli/grammar/command_line.h"

#include <algorithm>
#include <sstream>

#include "plimsoll/base/text.h"
#include "plimsoll/job/model.h"

namespace plimsoll::cli {
namespace {

using Takes = OptionShape::Takes;

constexpr std::size_t kHelpColumn = 28;
constexpr std::size_t kHelpWidth = 100;

bool is_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

/// "true", or a list of such words for a sweep.
bool is_boolean(const std::string& word) {
  std::istringstream list(word);
  const char separator = word.find(';') == std::string::npos ? ',' : ';';
  bool any = false;
  for (std::string one; std::getline(list, one, separator); any = true) {
    if (!job::is_boolean(one)) return false;
  }
  return any;
}

const OptionShape* find_option(const CommandShape& shape, const std::string& name) {
  const auto found = std::find_if(shape.options.begin(), shape.options.end(),
                                  [&](const OptionShape& option) { return option.name == name; });
  return found == shape.options.end() ? nullptr : &*found;
}

[[noreturn]] void refuse_option(const CommandShape& shape, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  for (const Hint& hint : shape.hints) {
    if (std::find(hint.options.begin(), hint.options.end(), name) != hint.options.end()) {
      throw UsageError(name + ": " + hint.answer);
    }
  }
  std::vector<std::string> names;
  for (const OptionShape& option : shape.options) names.push_back(option.name.substr(2));
  // Without the dashes, which would count as two letters that agree.
  std::string meant;
  for (const std::string& near : nearest(name.substr(name.find_first_not_of('-')), names, 3)) {
    meant += (meant.empty() ? ": did you mean --" : " or --") + near;
  }
  throw UsageError("unknown option " + in_quotes(word) + (meant.empty() ? "" : meant + "?") +
                   (shape.rest_is_script ? " (The script's own options go after the script.)" : ""));
}

/// The value of `option`. Moves `at` on if that is the next word.
std::string value_of(const CommandShape& shape, const OptionShape& option, const std::vector<std::string>& arguments,
                     std::size_t& at) {
  const std::size_t equals = arguments[at].find('=');
  if (equals != std::string::npos) {
    if (option.takes == Takes::kNothing) throw UsageError(option.name + " takes no value");
    return arguments[at].substr(equals + 1);
  }
  const std::string* next = at + 1 < arguments.size() ? &arguments[at + 1] : nullptr;
  switch (option.takes) {
    case Takes::kNothing:
      return "true";
    case Takes::kBoolean:
      return next != nullptr && is_boolean(*next) ? arguments[++at] : "true";
    case Takes::kFile:
      return next != nullptr && !is_option(*next) && !job::is_model_name(*next) ? arguments[++at] : "-";
    case Takes::kValue:
      break;
  }
  if (next == nullptr) throw UsageError(option.name + " needs a value: " + option.form);
  if (find_option(shape, *next) != nullptr) {
    throw UsageError(option.name + " needs a value (" + option.form + ") before " + *next);
  }
  return arguments[++at];
}

/// Adds `text` as lines of at most kHelpWidth, of which all but the first begin at `column`.
void add_wrapped(std::string& help, const std::string& text, std::size_t column) {
  std::istringstream words(text);
  std::size_t at = column;
  for (std::string word; words >> word;) {
    if (at > column && at + 1 + word.size() > kHelpWidth) {
      help += "\n" + std::string(column, ' ');
      at = column;
    } else if (at > column) {
      help += " ";
      ++at;
    }
    help += word;
    at += word.size();
  }
  help += "\n";
}

void add_option(std::string& help, const std::string& names, const std::string& about) {
  help += "  " + names;
  const std::size_t width = names.size() + 2;
  help += width + 2 > kHelpColumn ? "\n" + std::string(kHelpColumn, ' ') : std::string(kHelpColumn - width, ' ');
  add_wrapped(help, about, kHelpColumn);
}

}  // namespace

std::optional<std::string> CommandWords::option(const std::string& name) const {
  const auto found = options.find(name);
  return found == options.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::int64_t> CommandWords::whole(const std::string& name, std::int64_t least, std::int64_t most) const {
  const auto text = option(name);
  return text ? std::optional(job::parse_whole(name, *text, least, most)) : std::nullopt;
}

std::optional<std::string> CommandWords::file(const std::string& name) const {
  auto text = option(name);
  if (text && text->empty()) throw InvalidArgument(name + " needs the name of a file");
  return text;
}

CommandWords parse_words(const CommandShape& shape, const std::vector<std::string>& arguments) {
  CommandWords result;
  bool options_ended = false;
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    const std::string& word = arguments[at];
    if (!options_ended && word == "--") {
      options_ended = true;
      continue;
    }
    const std::string name = word.substr(0, word.find('='));
    const OptionShape* option = options_ended ? nullptr : find_option(shape, name);
    const bool is_word = options_ended || !is_option(word);
    if (shape.rest_is_script && (is_word || (option == nullptr && word.starts_with("-m")))) {
      result.words.assign(arguments.begin() + static_cast<std::ptrdiff_t>(at), arguments.end());
      return result;
    }
    if (option != nullptr) {
      if (result.has(name)) throw UsageError(name + " is given twice");
      result.options[name] = value_of(shape, *option, arguments, at);
    } else if (is_word) {
      result.words.push_back(word);
    } else if (word == "--help" || word == "-h") {
      return {.help = true};
    } else {
      refuse_option(shape, word);
    }
  }
  if (result.words.size() > shape.most_words) {
    throw UsageError("unexpected argument " + in_quotes(result.words[shape.most_words]));
  }
  return result;
}

std::string help_text(const CommandShape& shape) {
  std::string help = shape.about + "\n" + shape.details + (shape.details.empty() ? "" : "\n");
  help += "\nUsage: plimsoll " + shape.name + " [OPTIONS]" + (shape.words.empty() ? "" : " ") + shape.words + "\n";
  std::vector<std::string> groups;
  for (const OptionShape& option : shape.options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  }
  for (const std::string& group : groups) {
    help += "\n" + group + ":\n";
    for (const OptionShape& option : shape.options) {
      if (option.group != group) continue;
      add_option(help, option.name + (option.form.empty() ? "" : " ") + option.form, option.help);
    }
  }
  help += groups.empty() ? "\nOptions:\n" : "\n";
  add_option(help, "-h, --help", "print this help");
  return help + "\n" + shape.footer + "\n";
}

}  // namespace plimsoll::cli
