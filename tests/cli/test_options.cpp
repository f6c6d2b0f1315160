#include <doctest/doctest.h>

#include "plimsoll/cli/options.h"

namespace test_options {

using namespace plimsoll::cli;
using Texts = std::vector<std::string>;

namespace {

RunOptions run(const Texts& arguments) {
  const Command command = parse_command_line(arguments, "1.2.3");
  const auto* answer = std::get_if<Answer>(&command);
  const std::string said = answer == nullptr ? "" : answer->text;
  CAPTURE(said);
  REQUIRE(std::holds_alternative<RunOptions>(command));
  return std::get<RunOptions>(command);
}

Answer answer(const Texts& arguments) {
  const Command command = parse_command_line(arguments, "1.2.3");
  REQUIRE(std::holds_alternative<Answer>(command));
  return std::get<Answer>(command);
}

void check_refused(const Texts& arguments, const std::string& message) {
  const Answer refused = answer(arguments);
  CHECK(refused.exit_code == 2);
  CHECK(refused.text.starts_with("plimsoll: " + message));
  CHECK(refused.text.find("--help") != std::string::npos);
}

}  // namespace

TEST_CASE("a run needs nothing but a script") {
  const RunOptions options = run({"run", "train.py"});
  CHECK(options.gpu == "H100-80GB");
  CHECK_FALSE(options.gpu_memory.has_value());
  CHECK_FALSE(options.gpus_per_node);
  CHECK(options.world_size == 1);
  CHECK(options.rank == 0);
  CHECK_FALSE(options.python.has_value());
  CHECK_FALSE(options.alloc_conf.has_value());
  CHECK(options.event_lag == 0);
  CHECK_FALSE(options.steps.has_value());
  CHECK_FALSE(options.json.has_value());
  CHECK_FALSE(options.snapshot.has_value());
  CHECK(options.top == 10);
  CHECK_FALSE(options.explain);
  CHECK(options.depth == 2);
  CHECK(options.categories);
  CHECK_FALSE(options.quiet);
  CHECK_FALSE(options.is_module);
  CHECK(options.script == "train.py");
  CHECK(options.arguments.empty());
}

TEST_CASE("every option is read") {
  const RunOptions options = run({"run",
                                  "--gpu",
                                  "A100-40GB",
                                  "--gpu-memory",
                                  "30GiB",
                                  "--gpus-per-node",
                                  "4",
                                  "--world-size",
                                  "64",
                                  "--rank",
                                  "63",
                                  "--python",
                                  "python3.12",
                                  "--alloc-conf",
                                  "expandable_segments:True",
                                  "--event-lag",
                                  "7",
                                  "--steps",
                                  "2",
                                  "--json",
                                  "-",
                                  "--snapshot",
                                  "s.pickle",
                                  "--top=3",
                                  "--explain",
                                  "--depth",
                                  "0",
                                  "--quiet",
                                  "t.py"});
  CHECK(options.gpu == "A100-40GB");
  CHECK(options.gpu_memory == 30ULL << 30);
  CHECK(options.gpus_per_node == 4);
  CHECK(options.world_size == 64);
  CHECK(options.rank == 63);
  CHECK(options.python == "python3.12");
  CHECK(options.alloc_conf == "expandable_segments:True");
  CHECK(options.event_lag == 7);
  CHECK(options.steps == 2);
  CHECK(options.json == "-");
  CHECK(options.snapshot == "s.pickle");
  CHECK(options.top == 3);
  CHECK(options.explain);
  CHECK(options.depth == 0);
  CHECK(options.categories);
  CHECK(options.quiet);
}

TEST_CASE("categories can be left out, but not where the peak is to be explained") {
  CHECK_FALSE(run({"run", "--no-categories", "t.py", "--explain"}).categories);
  check_refused({"run", "--explain", "--no-categories", "t.py"},
                "--explain needs the categories that --no-categories leaves out: give one of the two");
}

TEST_CASE("what stands after the script belongs to the script, untouched") {
  const RunOptions options =
      run({"run", "--rank", "0", "t.py", "--gpu", "X", "--help", "-m", "y", "--", "", "a b", "run"});
  CHECK(options.gpu == "H100-80GB");
  CHECK(options.script == "t.py");
  CHECK(options.arguments == Texts{"--gpu", "X", "--help", "-m", "y", "--", "", "a b", "run"});
  CHECK(run({"run", "gpus", "run"}).script == "gpus");
  CHECK(run({"run", "--", "t.py", "--x"}).arguments == Texts{"--x"});
}

TEST_CASE("a module is named as Python's -m does it") {
  for (const Texts& words : {Texts{"-m", "a.b"}, Texts{"-ma.b"}}) {
    Texts arguments{"run", "--quiet"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    arguments.insert(arguments.end(), {"--gpu", "-m"});
    const RunOptions options = run(arguments);
    CHECK(options.is_module);
    CHECK(options.script == "a.b");
    CHECK(options.arguments == Texts{"--gpu", "-m"});
  }
}

TEST_CASE("a negative number is a value, not an option") { CHECK(run({"run", "--rank", "-1", "t.py"}).rank == -1); }

TEST_CASE("help and version are answers") {
  CHECK(answer({"--version"}).text == "plimsoll 1.2.3\n");
  for (const Texts& arguments : {Texts{"--help"}, Texts{"run", "--help"}, Texts{"gpus", "--help"},
                                 Texts{"models", "-h"}, Texts{"plan", "--help"}, Texts{"explain", "--help"},
                                 Texts{"fit", "--help"}, Texts{"sweep", "--help"}, Texts{"compare", "--help"}}) {
    CHECK(answer(arguments).exit_code == 0);
    CHECK(answer(arguments).text.find("Example") != std::string::npos);
  }
  const std::string help = answer({"run", "-h"}).text;
  CHECK(help.find("Usage: plimsoll run [OPTIONS] (script.py | -m module) [arguments...]") != std::string::npos);
  for (const char* option : {"--gpu ", "--gpu-memory", "--gpus-per-node", "--world-size", "--rank", "--python",
                             "--alloc-conf", "--event-lag", "--steps", "--json", "--snapshot", "--top", "--depth",
                             "--explain", "--no-categories", "--quiet"}) {
    CHECK(help.find(option) != std::string::npos);
  }
}

TEST_CASE("the list of cards takes nothing") {
  CHECK(std::holds_alternative<GpusOptions>(parse_command_line({"gpus"}, "")));
  check_refused({"gpus", "x"}, "plimsoll gpus takes no 'x'");
}

TEST_CASE("the help lists all commands") {
  const std::string help = answer({"--help"}).text;
  for (const char* command : {"plan", "explain", "fit", "sweep", "compare", "run", "models", "gpus", "--version"}) {
    CHECK(help.find(std::string("\n  ") + command + " ") != std::string::npos);
  }
}

TEST_CASE("models are listed, or one is named") {
  CHECK_FALSE(std::get<ModelsOptions>(parse_command_line({"models"}, "")).name.has_value());
  CHECK(std::get<ModelsOptions>(parse_command_line({"models", "llama3-8b"}, "")).name == "llama3-8b");
  check_refused({"models", "a", "b"}, "one word too many: 'b' after 'a' (expected: [NAME])");
}

TEST_CASE("a command line that makes no sense is refused with one message") {
  const std::string commands = "plan, explain, fit, sweep, compare, run, models, gpus";
  check_refused({}, "no command given: commands are " + commands + "\n");
  check_refused({"rnu"}, "unknown command 'rnu': did you mean run? Commands are " + commands + "\n");
  check_refused({"toaster"}, "unknown command 'toaster': Commands are " + commands + "\n");
  check_refused({"--foo"}, "unknown option '--foo': a command comes first, as in plimsoll plan");
  check_refused({"run"}, "no script given");
  check_refused({"run", "-m"}, "-m needs the name of a module");
  check_refused({"run", "--gpus", "H100", "t.py"}, "unknown option --gpus");
  check_refused({"run", "--gpu"}, "--gpu: 1 required");
  check_refused({"run", "--world-size", "many", "t.py"}, "Could not convert: --world-size = many");
  check_refused({"run", "--depth", "65", "t.py"}, "--depth expects a whole number from 0 to 64, found '65'");
  check_refused({"run", "--depth", "-1", "t.py"}, "--depth expects a whole number from 0 to 64, found '-1'");
  check_refused({"run", "--depth", "deep", "t.py"}, "--depth expects a whole number from 0 to 64, found 'deep'");
  check_refused({"run", "--depth"}, "--depth: 1 required");
  check_refused({"run", "--explian", "t.py"}, "unknown option --explian");
  check_refused({"run", "--gpu-memory", "much", "t.py"}, "'much' is not an amount of memory");
}

}  // namespace test_options
