#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/errors.h"
#include "plimsoll/job/values.h"

/// The grammar of every command line: a shape says which options and words a command takes. From the shape come the
/// parser and the help. Values stay text; each command converts them.
///
/// No library does this: options with an optional value (--keep-logits, --csv), the rest of a line that belongs to a
/// script, and messages that name the likely mistake would each need a detour around one.
namespace plimsoll::cli {

struct OptionShape {
  enum class Takes {
    kValue,    ///< Always one value.
    kBoolean,  ///< The next word if it is true or false, or a list of those; otherwise the value is true.
    kFile,     ///< The next word, unless it is an option or a model's name; otherwise standard output ("-").
    kNothing,
  };

  std::string name;  ///< With its dashes.
  std::string form;  ///< Of its value: "N", "FILE|-".
  std::string help;
  Takes takes = Takes::kValue;
  std::string group = "Options";  ///< Its heading in the help.
};

/// A fixed answer for options that the command does not have, and that people know from elsewhere.
struct Hint {
  std::vector<std::string> options;  ///< With their dashes.
  std::string answer;
};

struct CommandShape {
  std::string name;
  std::string about;         ///< One sentence: in the list of commands, and first in the command's help.
  std::string details = {};  ///< More for the command's help.
  std::string words = {};    ///< Beside the options, for the help: "MODEL".
  std::size_t most_words = 0;
  bool rest_is_script = false;            ///< The first word, or -m, ends the options; all that follows is words.
  std::vector<OptionShape> options = {};  ///< In the order of the help.
  std::vector<Hint> hints = {};
  std::string footer = {};  ///< Examples, and exit codes that differ from the usual ones.
};

/// A command line, taken apart.
struct CommandWords {
  bool help = false;                                ///< The user asked for help; the rest was not read.
  std::vector<std::string> words = {};              ///< Neither options nor their values, in their order.
  std::map<std::string, std::string> options = {};  ///< By name with dashes. A boolean without a value is "true".

  bool has(const std::string& name) const { return options.contains(name); }
  std::optional<std::string> option(const std::string& name) const;
  /// The whole number of an option that was given. Throws InvalidArgument if it is not in the range.
  std::optional<std::int64_t> whole(const std::string& name, std::int64_t least,
                                    std::int64_t most = job::kMostOfAnything) const;
  /// The name of a file. Throws InvalidArgument if it is empty.
  std::optional<std::string> file(const std::string& name) const;
};

/// A command line that the grammar does not allow. The answer points to the command's help.
class UsageError : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

/// Reads the words after the command's name. Throws UsageError.
CommandWords parse_words(const CommandShape& shape, const std::vector<std::string>& arguments);

std::string help_text(const CommandShape& shape);

}  // namespace plimsoll::cli
