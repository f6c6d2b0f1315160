#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "plimsoll/cli/options.h"

/// Command lines of options and words, read into text. What the text means is the caller's business, so that only this
/// file's source needs the library that parses, which takes long to compile.
namespace plimsoll::cli {

struct OptionShape {
  enum class Takes {
    kValue,    ///< Always one.
    kBoolean,  ///< The next word where it is true or false, or a list of those; else it is true.
    kFile,     ///< The next word, unless that is an option or the name of a model; else standard output ("-").
    kNothing,
  };

  std::string name;  ///< With its dashes.
  std::string form;  ///< What a value looks like.
  std::string help;
  Takes takes = Takes::kValue;
  std::string group = "Options";  ///< Under which it stands in the help.
};

struct CommandShape {
  std::string name;
  std::string about;
  std::string words;  ///< What stands beside the options, for the help: "MODEL".
  std::size_t most_words = 0;
  std::vector<OptionShape> options;
  std::string footer;
};

struct CommandWords {
  std::vector<std::string> words;              ///< Those that are no options and no values, in their order.
  std::map<std::string, std::string> options;  ///< By name with dashes; of a boolean without a value "true".

  /// Empty where it was not given.
  std::optional<std::string> option(const std::string& name) const;
};

/// The words of a command line (without the command's name), or the answer where that is all there is to do: help, or
/// what is wrong. Unknown options are answered with those that were probably meant.
std::variant<CommandWords, Answer> parse_words(const CommandShape& shape, const std::vector<std::string>& arguments);

}  // namespace plimsoll::cli
