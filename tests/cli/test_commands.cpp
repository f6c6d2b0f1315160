#include <doctest/doctest.h>

#include <set>

#include "cli/call_command.h"

namespace test_commands {

using namespace plimsoll::cli;
using Texts = std::vector<std::string>;

namespace {

Called whole(const Texts& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  const int exit_code = plimsoll_main(arguments, {.out = out, .err = err});
  return {exit_code, out.str(), err.str()};
}

}  // namespace

TEST_CASE("the help lists all commands, and each has examples in its own") {
  const std::string help = call({"--help"}).out;
  CHECK(call({"-h"}).out == help);
  std::set<std::string> names;
  for (const Command& command : commands()) {
    const CommandShape& shape = command.shape;
    CAPTURE(shape.name);
    CHECK(names.insert(shape.name).second);
    CHECK(help.find("\n  " + shape.name + " ") != std::string::npos);
    CHECK(help.find(shape.about + "\n") != std::string::npos);
    const Called own = call({shape.name, "--help"});
    CHECK(own.exit_code == 0);
    CHECK(own.out.starts_with(shape.about + "\n"));
    CHECK(own.out.find("\nUsage: plimsoll " + shape.name + " [OPTIONS]") != std::string::npos);
    CHECK(own.out.find("\nExample") != std::string::npos);
    CHECK(call({shape.name, "-h"}).out == own.out);
  }
  CHECK(names.size() >= 8);
}

TEST_CASE("every option of a command is in its help once") {
  for (const Command& command : commands()) {
    std::set<std::string> names;
    for (const OptionShape& option : command.shape.options) {
      CAPTURE(option.name);
      CHECK(names.insert(option.name).second);
      CHECK(option.name.starts_with("--"));
      CHECK(option.form.empty() == (option.takes == OptionShape::Takes::kNothing));
    }
    for (const Hint& hint : command.shape.hints) {
      for (const std::string& option : hint.options) CHECK_FALSE(names.contains(option));
    }
  }
}

TEST_CASE("the version is printed") { CHECK(call({"--version"}).out == "plimsoll " + version() + "\n"); }

TEST_CASE("a command line without a known command is refused with the list of commands") {
  const std::string list = "Commands: plan, explain, fit, sweep, compare, run, models, gpus, schema";
  CHECK(refusal_of({}).starts_with("no command given. " + list));
  CHECK(refusal_of({"rnu"}).starts_with("unknown command 'rnu': did you mean run? " + list));
  CHECK(refusal_of({"toaster"}).starts_with("unknown command 'toaster'. " + list));
  CHECK(refusal_of({"--foo"}) == "unknown option '--foo': the command comes first, as in plimsoll plan");
}

TEST_CASE("a wrong command line ends with exit code 2, one message and the place of the help") {
  const Called unknown = whole({"plan", "m", "--gpuss", "8"});
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.out.empty());
  CHECK(unknown.err == "plimsoll: unknown option '--gpuss': did you mean --gpus?\nSee plimsoll plan --help.\n");
  CHECK(whole({"--foo"}).err.ends_with("\nSee plimsoll --help.\n"));
  CHECK(whole({"run"}).err ==
        "plimsoll: no script given: write plimsoll run script.py, or plimsoll run -m module\nSee plimsoll run "
        "--help.\n");
  const Called value = whole({"plan", "m", "--depth", "0"});
  CHECK(value.exit_code == 2);
  CHECK(value.err == "plimsoll: --depth expects a whole number from 1 to 100, found '0': that is too small\n");
}

TEST_CASE("each command refuses the words and options of others") {
  CHECK(refusal_of({"gpus", "x"}) == "unexpected argument 'x'");
  CHECK(refusal_of({"models", "a", "b"}) == "unexpected argument 'b'");
  CHECK(refusal_of({"plan", "m", "n"}) == "unexpected argument 'n'");
  CHECK(refusal_of({"compare", "a", "b", "c"}) == "unexpected argument 'c'");
  CHECK(refusal_of({"compare", "a.json"}) ==
        "compare needs two documents: write them with --json of `plimsoll plan` or `plimsoll run`");
  CHECK(refusal_of({"plan", "m", "--csv"}) == "unknown option '--csv'");
  CHECK(refusal_of({"explain", "m", "--csv", "x"}) == "unknown option '--csv'");
  CHECK(refusal_of({"sweep", "m", "--csv", "--json"}) ==
        "--csv and --json cannot both go to standard output: give one of them a file");
}

TEST_CASE("a fit searches for exactly one thing") {
  const std::string one = "give exactly one of --maximize batch, --maximize seq-len and --minimize gpus";
  CHECK(refusal_of({"fit", "m"}) == one);
  CHECK(refusal_of({"fit", "m", "--maximize", "batch", "--minimize", "gpus"}) == one);
  CHECK(refusal_of({"fit", "m", "--maximize", "bach"}) ==
        "--maximize expects batch or seq-len, found 'bach': did you mean batch?");
  CHECK(refusal_of({"fit", "m", "--minimize", "batch"}) == "--minimize expects gpus, found 'batch'");
  CHECK(refusal_of({"fit", "m", "--maximize", "batch", "--limit", "0"}) ==
        "--limit expects a whole number from 1 to 2147483647, found '0': that is too small");
}

TEST_CASE("a run refuses wrong numbers, and a rank that does not exist") {
  const auto refused = [](Texts options) {
    options.insert(options.begin(), "run");
    options.push_back("t.py");
    return refusal_of(options);
  };
  CHECK(refused({"--world-size", "0"}) ==
        "--world-size expects a whole number from 1 to 2147483647, found '0': that is too small");
  CHECK(refused({"--world-size", "many"}) == "--world-size expects a whole number from 1 to 2147483647, found 'many'");
  CHECK(refused({"--gpus-per-node", "121"}) ==
        "--gpus-per-node expects a whole number from 1 to 120, found '121': that is too large");
  CHECK(refused({"--rank", "-1"}) ==
        "--rank expects a whole number from 0 to 2147483647, found '-1': that is too small");
  CHECK(refused({"--rank", "8", "--world-size", "8"}) ==
        "--rank 8 does not exist: the ranks of --world-size 8 are 0 to 7");
  CHECK(refused({"--steps", "0"}) ==
        "--steps expects a whole number from 1 to 2147483647, found '0': that is too small");
  CHECK(refused({"--top", "0"}) == "--top expects a whole number from 1 to 2147483647, found '0': that is too small");
  CHECK(refused({"--event-lag", "-1"}) ==
        "--event-lag expects a whole number from 0 to 2147483647, found '-1': that is too small");
  CHECK(refused({"--depth", "65"}) == "--depth expects a whole number from 0 to 64, found '65': that is too large");
  CHECK(refused({"--depth", "deep"}) == "--depth expects a whole number from 0 to 64, found 'deep'");
  CHECK(refused({"--gpu-memory", "0"}) ==
        "--gpu-memory expects an amount of memory above 0 and at most 256TiB, found '0'");
  CHECK(refused({"--gpu-memory", "much"}) ==
        "--gpu-memory expects an amount of memory, found 'much': write a number and a unit, as in 80GiB, 24GB or "
        "1073741824");
  CHECK(refused({"--snapshot", "-"}) == "--snapshot needs the name of a file: a snapshot is binary");
  CHECK(refused({"--snapshot="}) == "--snapshot needs the name of a file");
  CHECK(refused({"--json="}) == "--json needs the name of a file");
  CHECK(refused({"--explain", "--no-categories"}) ==
        "--explain and --no-categories exclude each other: give one of them");
}

TEST_CASE("a run needs a script, and names options that are not its own") {
  CHECK(refusal_of({"run"}) == "no script given: write plimsoll run script.py, or plimsoll run -m module");
  CHECK(refusal_of({"run", "-m"}) == "-m needs the name of a module, as in -m my.package.train");
  CHECK(refusal_of({"run", "--gpus", "8", "t.py"}) ==
        "--gpus: give --world-size, the number of ranks (and --gpu, the name of the GPU)");
  CHECK(refusal_of({"run", "--explian", "t.py"}) ==
        "unknown option '--explian': did you mean --explain? (The script's own options go after the script.)");
  CHECK(refusal_of({"run", "--gpu"}) == "--gpu needs a value: NAME|FILE");
  CHECK(refusal_of({"run", "/nowhere/train.py"}) == "no such script: /nowhere/train.py");
  CHECK(refusal_of({"run", "/"}) == "/ is a folder: give a script in it, or -m with the name of a package");
  CHECK(refusal_of({"run", "gpus", "run"}) == "no such script: gpus");
}

}  // namespace test_commands
