#include <doctest/doctest.h>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/process/child_process.h"

namespace test_child_process {

using namespace plimsoll::cli;

namespace {

ChildExit shell(const std::string& program) { return run_child({"/bin/sh", "-c", program}, current_environment()); }

}  // namespace

TEST_CASE("a child's exit code is known") {
  CHECK(shell("exit 0").exit_code == 0);
  CHECK(shell("exit 41").exit_code == 41);
  CHECK_FALSE(shell("exit 41").signal.has_value());
}

TEST_CASE("a child that a signal ended has the exit code of a shell") {
  const ChildExit exit = shell("kill -9 $$");
  CHECK(exit.signal == 9);
  CHECK(exit.exit_code == 137);
}

TEST_CASE("signals that reach the command are passed on to the child, and do not end the command") {
  for (const char* signal : {"TERM", "INT", "HUP"}) {
    CAPTURE(signal);
    const std::string name = signal;
    CHECK(shell("trap 'exit 7' " + name + "; kill -" + name + " $PPID; sleep 20 & wait; exit 1").exit_code == 7);
  }
  CHECK(shell("kill -TERM $PPID; sleep 20 & wait; exit 1").signal == 15);
}

TEST_CASE("a child has exactly the given environment") {
  CHECK(run_child({"/bin/sh", "-c", "test \"$A\" = 'x y' && test -z \"$HOME\""}, {{"A", "x y"}}).exit_code == 0);
}

TEST_CASE("a program that cannot be started is named") {
  CHECK_THROWS_WITH_AS(run_child({"/nowhere/python"}, {}), "cannot start /nowhere/python: No such file or directory",
                       plimsoll::SystemError);
  CHECK_THROWS_WITH_AS(capture_child({"no-such-program-here"}), doctest::Contains("cannot start no-such-program-here"),
                       plimsoll::SystemError);
}

TEST_CASE("the output of a child can be captured") {
  const Captured captured = capture_child({"sh", "-c", "printf 'a\\nb'; exit 3"});
  CHECK(captured.output == "a\nb");
  CHECK(captured.exit.exit_code == 3);
}

}  // namespace test_child_process
