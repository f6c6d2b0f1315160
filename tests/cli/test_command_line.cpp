#include <doctest/doctest.h>

#include "plimsoll/cli/grammar/command_line.h"

namespace test_command_line {

using namespace plimsoll::cli;
using Takes = OptionShape::Takes;
using Texts = std::vector<std::string>;

namespace {

const CommandShape kPlan{.name = "draw",
                         .about = "Draws a model.",
                         .words = "MODEL",
                         .most_words = 1,
                         .options = {{"--gpus", "N", "the number of GPUs", Takes::kValue, "Job"},
                                     {"--keep", "true|false", "keep it", Takes::kBoolean, "Job"},
                                     {"--csv", "FILE|-", "write it", Takes::kFile, "Output"},
                                     {"--quiet", "", "say little", Takes::kNothing, "Output"}},
                         .hints = {{{"--tp", "--tensor-parallel"}, "there is no tensor parallelism here"}},
                         .footer = "Example:\n  plimsoll draw m"};
const CommandShape kRun{.name = "start",
                        .about = "Starts a script.",
                        .rest_is_script = true,
                        .options = {{"--rank", "N", "the rank"}, {"--quiet", "", "say little", Takes::kNothing}}};

std::string refusal(const CommandShape& shape, const Texts& arguments) {
  try {
    parse_words(shape, arguments);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "(not refused)";
}

}  // namespace

TEST_CASE("options and words come in any order, and a value after a space or an equals sign") {
  const CommandWords words = parse_words(kPlan, {"--gpus", "8", "llama", "--quiet", "--csv=t.csv"});
  CHECK(words.words == Texts{"llama"});
  CHECK(words.option("--gpus") == "8");
  CHECK(words.option("--csv") == "t.csv");
  CHECK(words.has("--quiet"));
  CHECK_FALSE(words.has("--keep"));
  CHECK_FALSE(words.option("--keep"));
  CHECK(parse_words(kPlan, {"--gpus=", "m"}).option("--gpus") == "");
  CHECK(parse_words(kPlan, {"--", "--gpus"}).words == Texts{"--gpus"});
  CHECK(parse_words(kPlan, {"-"}).words == Texts{"-"});
}

TEST_CASE("a value may begin with a dash, unless it is an option of the command") {
  CHECK(parse_words(kPlan, {"--gpus", "-1"}).option("--gpus") == "-1");
  CHECK(refusal(kPlan, {"--gpus", "--quiet"}) == "--gpus needs a value (N) before --quiet");
  CHECK(refusal(kPlan, {"m", "--gpus"}) == "--gpus needs a value: N");
}

TEST_CASE("a boolean takes the next word only if that is a boolean or a list of them") {
  CHECK(parse_words(kPlan, {"--keep", "llama"}).option("--keep") == "true");
  CHECK(parse_words(kPlan, {"--keep", "llama"}).words == Texts{"llama"});
  CHECK(parse_words(kPlan, {"m", "--keep"}).option("--keep") == "true");
  CHECK(parse_words(kPlan, {"m", "--keep", "FALSE"}).option("--keep") == "FALSE");
  CHECK(parse_words(kPlan, {"m", "--keep=maybe"}).option("--keep") == "maybe");
  CHECK(parse_words(kPlan, {"m", "--keep", "true,false"}).option("--keep") == "true,false");
  CHECK(parse_words(kPlan, {"m", "--keep", "true;false"}).option("--keep") == "true;false");
}

TEST_CASE("a file option takes the next word unless that is an option or a model; otherwise standard output") {
  CHECK(parse_words(kPlan, {"m", "--csv"}).option("--csv") == "-");
  CHECK(parse_words(kPlan, {"m", "--csv", "--quiet"}).option("--csv") == "-");
  CHECK(parse_words(kPlan, {"--csv", "llama3-8b"}).option("--csv") == "-");
  CHECK(parse_words(kPlan, {"--csv", "mistral-7b"}).words == Texts{"mistral-7b"});
  CHECK(parse_words(kPlan, {"m", "--csv", "t.csv"}).option("--csv") == "t.csv");
  CHECK(parse_words(kPlan, {"m", "--csv", "-"}).option("--csv") == "-");
}

TEST_CASE("a wrong command line is refused with the likely mistake") {
  CHECK(refusal(kPlan, {"m", "n"}) == "unexpected argument 'n'");
  CHECK(refusal(kPlan, {"m", "--gpus", "8", "--gpus=16"}) == "--gpus is given twice");
  CHECK(refusal(kPlan, {"m", "--quiet=yes"}) == "--quiet takes no value");
  CHECK(refusal(kPlan, {"m", "--gpuss", "8"}) == "unknown option '--gpuss': did you mean --gpus?");
  CHECK(refusal(kPlan, {"m", "--qiuet"}) == "unknown option '--qiuet': did you mean --quiet?");
  CHECK(refusal(kPlan, {"-x"}) == "unknown option '-x'");
}

TEST_CASE("a name far from all options is not guessed at") {
  for (const char* far : {"--fp8", "--frobnicate", "--dtype", "--cpus-per-gpu", "--zero"}) {
    CHECK(refusal(kPlan, {"m", far}) == "unknown option '" + std::string(far) + "'");
  }
}

TEST_CASE("a word of other tools has a fixed answer, with or without a value") {
  CHECK(refusal(kPlan, {"m", "--tp", "8"}) == "--tp: there is no tensor parallelism here");
  CHECK(refusal(kPlan, {"m", "--tensor-parallel=8"}) == "--tensor-parallel: there is no tensor parallelism here");
}

TEST_CASE("what follows the script belongs to the script, unchanged") {
  const Texts rest{"t.py", "--rank", "X", "--help", "-m", "y", "--", "", "a b"};
  Texts arguments{"--rank", "0"};
  arguments.insert(arguments.end(), rest.begin(), rest.end());
  const CommandWords words = parse_words(kRun, arguments);
  CHECK(words.words == rest);
  CHECK(words.option("--rank") == "0");
  CHECK_FALSE(words.help);
  CHECK(parse_words(kRun, {"--", "t.py", "--x"}).words == Texts{"t.py", "--x"});
  CHECK(parse_words(kRun, {"--quiet", "-m", "a.b", "--rank"}).words == Texts{"-m", "a.b", "--rank"});
  CHECK(parse_words(kRun, {"-ma.b"}).words == Texts{"-ma.b"});
  CHECK(refusal(kRun, {"--rnak", "1", "t.py"}) ==
        "unknown option '--rnak': did you mean --rank? (The script's own options go after the script.)");
}

TEST_CASE("numbers and files are checked by name") {
  const CommandWords words = parse_words(kPlan, {"--gpus", "9", "--csv="});
  CHECK(words.whole("--gpus", 1) == 9);
  CHECK_FALSE(words.whole("--limit", 1));
  CHECK_THROWS_WITH(words.whole("--gpus", 1, 8),
                    "--gpus expects a whole number from 1 to 8, found '9': that is too large");
  CHECK_THROWS_WITH(words.file("--csv"), "--csv needs the name of a file");
}

TEST_CASE("the help has the groups in the order of the options, and wraps long lines") {
  CHECK(parse_words(kPlan, {"m", "--help"}).help);
  CHECK(parse_words(kRun, {"-h"}).help);
  CHECK(help_text(kPlan) ==
        "Draws a model.\n\n"
        "Usage: plimsoll draw [OPTIONS] MODEL\n\n"
        "Job:\n"
        "  --gpus N                  the number of GPUs\n"
        "  --keep true|false         keep it\n\n"
        "Output:\n"
        "  --csv FILE|-              write it\n"
        "  --quiet                   say little\n\n"
        "  -h, --help                print this help\n\n"
        "Example:\n  plimsoll draw m\n");
  CommandShape wide = kRun;
  wide.options = {{"--a-long-name-of-an-option", "TEXT", "one two three"}};
  wide.options.push_back({"--b", "", std::string(60, 'x') + " " + std::string(30, 'y'), Takes::kNothing});
  const std::string text = help_text(wide);
  CHECK(text.find("  --a-long-name-of-an-option TEXT\n                            one two three\n") !=
        std::string::npos);
  CHECK(text.find(std::string(60, 'x') + "\n                            " + std::string(30, 'y')) != std::string::npos);
}

}  // namespace test_command_line
