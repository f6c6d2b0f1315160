#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cli/fake_home.h"
#include "plimsoll/base/errors.h"
#include "plimsoll/cli/commands/commands.h"

namespace test_run_command {

using namespace plimsoll::cli;
using plimsoll::InvalidArgument;
namespace fs = std::filesystem;

namespace {

struct Result {
  int exit_code = 0;
  std::string out;
  std::string err;
};

Result run(const FakeHome& home, RunOptions options = {}) {
  if (options.script.empty()) options.script = home.script().string();
  std::ostringstream out;
  std::ostringstream err;
  const int exit_code = run_command(options, home.installation(), {.out = out, .err = err});
  return {exit_code, out.str(), err.str()};
}

/// A shell command that leaves a record with these fields beside the obligatory ones.
std::string leave_record(const std::string& fields) {
  return "printf '%s' '{\"version\":1,\"main\":true,\"complete\":true,\"peak\":{\"device_bytes\":1073741824}" + fields +
         "}' > $record/$$.json\n";
}

const std::string kOom =
    ",\"oom\":{\"requested_bytes\":2147483648,\"device_free_bytes\":1073741824,\"device_total_bytes\":84943110144}";

std::string contents(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("the exit code is the script's own when it fits, and 3 when it ran out of memory") {
  CHECK(run(FakeHome(leave_record(""))).exit_code == 0);
  CHECK(run(FakeHome(leave_record("") + "exit 5")).exit_code == 5);
  CHECK(run(FakeHome(leave_record(kOom) + "exit 1")).exit_code == 3);
  CHECK(run(FakeHome(leave_record(kOom) + "exit 0")).exit_code == 3);
  CHECK(run(FakeHome(leave_record("") + "kill -9 $$")).exit_code == 137);
}

TEST_CASE("the report follows on standard output") {
  CHECK(run(FakeHome(leave_record("")))
            .out.starts_with("\nfits: 1.00 GiB of 79.11 GiB on the device book, 78.11 GiB to spare (H100-80GB)\n"));
  CHECK(run(FakeHome(leave_record(kOom) + "exit 1")).out.starts_with("\ndoes not fit: 2.00 GiB asked for"));
  CHECK(run(FakeHome("exit 1")).out == "\nno verdict: the script left no record of a GPU; it ended with exit code 1\n");
  CHECK(run(FakeHome(leave_record("") + "kill -9 $$")).out.find("signal 9 (Killed) ended it") != std::string::npos);
}

TEST_CASE("the report goes as deep into modules as asked for, and explains the peak when asked") {
  const FakeHome home(leave_record(
      ",\"peak\":{\"device_bytes\":1073741824,\"active_bytes\":1024,\"step\":1,\"phase\":\"backward\","
      "\"categories\":{\"Activation\":1024}},\"modules\":[{\"name\":\"a.b.c\",\"type\":\"Linear\",\"fsdp_unit\":false,"
      "\"parameters\":1,\"highest_bytes\":1024,\"total_bytes\":1024,\"at_peak\":{\"Activation\":1024}}],"
      "\"causes\":[{\"bytes\":1024,\"category\":\"Activation\",\"why\":\"saved\",\"sentence\":\"1.00 KiB saved\","
      "\"owners\":[]}]"));
  const std::string plain = run(home).out;
  CHECK(plain.find("\nThe peak: step 1, backward\n") != std::string::npos);
  CHECK(plain.find("  Activation  1.00 KiB  100.0 %  results of forward") != std::string::npos);
  CHECK(plain.find("a.b.c") == std::string::npos);
  CHECK(plain.find("cause by cause") == std::string::npos);
  RunOptions options;
  options.depth = 3;
  options.explain = true;
  const std::string explained = run(home, options).out;
  CHECK(explained.find("\n  a.b.c ") != std::string::npos);
  CHECK(explained.find("\nThe peak, cause by cause: 1.00 KiB active; step 1, backward\n  1.00 KiB  100.0 %  saved\n") !=
        std::string::npos);
}

TEST_CASE("the child is told whether to look for categories, and how deep into modules") {
  const FakeHome home("printf '%s' \"$PLIMSOLL_RUN\" > \"${0%/.plimsoll/*}/settings\"");
  run(home);
  CHECK(contents(home.path() / "settings").find("\"categories\":true,\"depth\":2,") != std::string::npos);
  RunOptions options;
  options.categories = false;
  options.depth = 5;
  run(home, options);
  CHECK(contents(home.path() / "settings").find("\"categories\":false,\"depth\":5,") != std::string::npos);
}

TEST_CASE("JSON to standard output moves the text to standard error") {
  RunOptions options;
  options.json = "-";
  const Result result = run(FakeHome(leave_record("") + "echo printed by the script"), options);
  CHECK(result.out.starts_with("{\n  \"version\": 1,\n  \"fits\": true,\n  \"gpu\": {\n    \"name\": \"H100-80GB\","));
  CHECK(result.err.starts_with("\nfits: "));
}

TEST_CASE("quiet means no report, but the files that were asked for") {
  const FakeHome home(leave_record("") + "echo snap > \"$(dirname $record)/snapshot.pickle\"");
  RunOptions options;
  options.quiet = true;
  options.json = (home.path() / "out.json").string();
  options.snapshot = (home.path() / "out.pickle").string();
  const Result result = run(home, options);
  CHECK(result.out.empty());
  CHECK(result.err.empty());
  CHECK(contents(*options.json).starts_with("{\n  \"version\": 1,"));
  CHECK(contents(*options.snapshot) == "snap\n");
}

TEST_CASE("a snapshot that was never taken is said") {
  const FakeHome home(leave_record(""));
  RunOptions options;
  options.snapshot = (home.path() / "out.pickle").string();
  CHECK(run(home, options).err.find("there is no snapshot") != std::string::npos);
  CHECK_FALSE(fs::exists(*options.snapshot));
}

TEST_CASE("the child gets the runner, the script and its arguments, the card and torchrun's variables") {
  const FakeHome home(
      "printf '%s\\n' \"$@\" \"$RANK/$WORLD_SIZE/$LOCAL_RANK\" \"$PLIMSOLL_GPUS\" > \"${0%/.plimsoll/*}/seen\"\n"
      "cat \"$PLIMSOLL_GPU_PROFILE\" > \"${0%/.plimsoll/*}/profile\"");
  RunOptions options;
  options.world_size = 16;
  options.rank = 9;
  options.gpu_memory = 40ULL << 30;
  options.is_module = true;
  options.script = "a.b";
  options.arguments = {"--x", "y z"};
  run(home, options);
  CHECK(contents(home.path() / "seen") == home.installation().runner().string() + "\n-m\na.b\n--x\ny z\n9/16/1\n8\n");
  CHECK(contents(home.path() / "profile").find("\"memory_bytes\": 42949672960,") != std::string::npos);
}

TEST_CASE("a record that cannot be read is said, and the others count") {
  const Result result = run(FakeHome(leave_record("") + "echo broken > $record/0.json"));
  CHECK(result.err.find("plimsoll: 0.json is not a record") != std::string::npos);
  CHECK(result.out.starts_with("\nfits: "));
}

TEST_CASE("bad input is refused before anything is started or written, and nothing is left behind") {
  const FakeHome home("touch \"${0%/.plimsoll/*}/started\"");
  const fs::path temporary = home.path() / "tmp";
  fs::create_directory(temporary);
  setenv("TMPDIR", temporary.c_str(), 1);
  const auto refuse = [&](const auto& change, const char* message) {
    RunOptions options;
    options.script = home.script().string();
    options.json = (home.path() / "out.json").string();
    change(options);
    CHECK_THROWS_WITH(run(home, options), doctest::Contains(message));
  };
  std::ofstream(home.path() / "broken.json") << "{\"name\": \"mine\"}";
  refuse([](RunOptions& o) { o.script = "/nowhere.py"; }, "no such script: /nowhere.py");
  refuse([](RunOptions& o) { o.script = "/"; }, "/ is a folder");
  refuse([](RunOptions& o) { o.gpu = "H10-80GB"; }, "unknown GPU 'H10-80GB'; did you mean H100-80GB?");
  refuse([&](RunOptions& o) { o.gpu = (home.path() / "broken.json").string(); }, "field 'device_name' is missing");
  refuse([](RunOptions& o) { o.rank = 1; }, "--rank 1 is not a rank of a job of 1");
  refuse([](RunOptions& o) { o.json = "/nowhere/x.json"; }, "--json: cannot write /nowhere/x.json");
  refuse([](RunOptions& o) { o.snapshot = "/nowhere/x.pickle"; }, "--snapshot: cannot write /nowhere/x.pickle");
  refuse([](RunOptions& o) { o.python = "/nowhere/python"; }, "--python: /nowhere/python does not exist");
  refuse([](RunOptions& o) { o.gpu_memory = 1 << 20; }, "--gpu-memory 1.00 MiB does not even hold the context");
  CHECK_FALSE(fs::exists(home.path() / "started"));
  CHECK_FALSE(fs::exists(home.path() / "out.json"));
  CHECK(fs::is_empty(temporary));
  CHECK(run(home).exit_code == 0);
  CHECK(fs::exists(home.path() / "started"));
  CHECK(fs::is_empty(temporary));
  unsetenv("TMPDIR");
}

TEST_CASE("the list of cards has every profile with its memory") {
  const FakeHome home("exit 0");
  std::ostringstream out;
  std::ostringstream err;
  CHECK(gpus_command(home.installation(), {.out = out, .err = err}) == 0);
  CHECK(out.str().find("H100-80GB       79.11 GiB                 9.0  132  NVIDIA H100 80GB HBM3\n") !=
        std::string::npos);
  CHECK_THROWS_WITH_AS(gpus_command({"/nowhere", "/nowhere"}, {.out = out, .err = err}),
                       doctest::Contains("no GPU profiles in /nowhere"), InvalidArgument);
}

TEST_CASE("the whole command answers with exit code 2 and one message where it cannot go on") {
  std::ostringstream out;
  std::ostringstream err;
  CHECK(plimsoll_main({"run", "--gpu", "toaster", __FILE__}, {.out = out, .err = err}) == 2);
  CHECK(err.str().starts_with("plimsoll: unknown GPU 'toaster'"));
  err.str("");
  CHECK(plimsoll_main({"run"}, {.out = out, .err = err}) == 2);
  CHECK(err.str().starts_with("plimsoll: no script given"));
  CHECK(plimsoll_main({"--version"}, {.out = out, .err = err}) == 0);
  CHECK(out.str() == "plimsoll " + version() + "\n");
}

}  // namespace test_run_command
