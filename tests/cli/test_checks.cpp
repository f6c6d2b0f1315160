#include <doctest/doctest.h>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/checks.h"
#include "plimsoll/cli/output_file.h"

namespace test_checks {

using namespace plimsoll::cli;
using plimsoll::InvalidArgument;

namespace {

template <typename Change>
void check_refused(const Change& change, const char* message) {
  RunOptions options;
  options.script = "t.py";
  check_numbers(options);
  change(options);
  CHECK_THROWS_WITH_AS(check_numbers(options), message, InvalidArgument);
}

}  // namespace

TEST_CASE("numbers that make no sense are refused by name") {
  check_refused([](RunOptions& o) { o.world_size = 0; }, "--world-size must be at least 1, found 0");
  check_refused([](RunOptions& o) { o.gpus_per_node = -2; }, "--gpus-per-node must be at least 1, found -2");
  check_refused([](RunOptions& o) { o.gpus_per_node = 121; },
                "--gpus-per-node is 121: torch knows at most 120 GPUs in one machine; for more ranks set --world-size");
  check_refused([](RunOptions& o) { o.rank = -1; }, "--rank must be at least 0, found -1");
  check_refused([](RunOptions& o) { o.rank = 8, o.world_size = 8; },
                "--rank 8 is not a rank of a job of 8: ranks go from 0 to 7; set --world-size too");
  check_refused([](RunOptions& o) { o.world_size = 1LL << 40; }, "--world-size is too large: 1099511627776");
  check_refused([](RunOptions& o) { o.steps = 0; }, "--steps must be at least 1, found 0");
  check_refused([](RunOptions& o) { o.top = 0; }, "--top must be at least 1, found 0");
  check_refused([](RunOptions& o) { o.event_lag = -1; }, "--event-lag must be at least 0, found -1");
  check_refused([](RunOptions& o) { o.gpu_memory = 0; }, "--gpu-memory must be above zero");
  check_refused([](RunOptions& o) { o.snapshot = "-"; }, "--snapshot needs the name of a file: a snapshot is not text");
  check_refused([](RunOptions& o) { o.json = ""; }, "--json needs the name of a file, or -");
}

TEST_CASE("a script must be a file") {
  RunOptions options;
  options.script = "/nowhere/train.py";
  CHECK_THROWS_WITH_AS(check_script(options), "no such script: /nowhere/train.py", InvalidArgument);
  options.script = "/";
  CHECK_THROWS_WITH_AS(check_script(options), "/ is a folder: name the script in it, or use -m for a package",
                       InvalidArgument);
  options.script = __FILE__;
  CHECK_NOTHROW(check_script(options));
  options.is_module = true;
  options.script = "no.such.module";
  CHECK_NOTHROW(check_script(options));
}

TEST_CASE("what the child was told to run and did not find is bad usage") {
  const TemporaryFolder folder;
  CHECK_NOTHROW(check_usage(folder.path()));
  write_file(folder.path() / "bad_usage", "-m no.such cannot be run: No module named no.such");
  CHECK_THROWS_WITH_AS(check_usage(folder.path()), "-m no.such cannot be run: No module named no.such",
                       InvalidArgument);
}

}  // namespace test_checks
