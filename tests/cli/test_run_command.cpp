#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cli/call_command.h"
#include "cli/fake_home.h"

namespace test_run_command {

using namespace plimsoll::cli;
namespace fs = std::filesystem;

namespace {

/// `plimsoll run` with these options and a script.
Called run(const FakeHome& home, std::vector<std::string> options = {}) {
  options.insert(options.begin(), "run");
  options.push_back(home.script().string());
  return call(options, home.installation(), {});
}

/// A shell command that leaves a record with these fields beside the obligatory ones.
std::string leave_record(const std::string& fields) {
  return "printf '%s' '{\"version\":2,\"main\":true,\"complete\":true,\"peak\":{\"device_bytes\":1073741824}" + fields +
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
            .out.starts_with("\nFits: 1.00 of 79.11 GiB used on an H100-80GB, 78.11 GiB left.\n"));
  CHECK(
      run(FakeHome(leave_record(kOom) + "exit 1")).out.starts_with("\nDoes not fit: an allocation of 2.00 GiB failed"));
  CHECK(run(FakeHome("exit 1")).out == "\nNo verdict: the script ended with exit code 1; it had not used the GPU.\n");
  CHECK(run(FakeHome(leave_record("") + "kill -9 $$")).out.find("he script was stopped (SIGKILL)") !=
        std::string::npos);
}

TEST_CASE("--depth sets the depth of the module table, and --explain adds the causes") {
  const FakeHome home(leave_record(
      ",\"peak\":{\"device_bytes\":1073741824,\"active_bytes\":1024,\"step\":1,\"phase\":\"backward\","
      "\"categories\":{\"Activation\":1024}},\"modules\":[{\"name\":\"a.b.c\",\"type\":\"Linear\",\"fsdp_unit\":false,"
      "\"parameters\":1,\"highest_bytes\":1024,\"total_bytes\":1024,\"at_peak\":{\"Activation\":1024}}],"
      "\"causes\":[{\"bytes\":1024,\"category\":\"Activation\",\"why\":\"saved\","
      "\"owners\":[]}]"));
  const std::string plain = run(home, {"--full"}).out;
  CHECK(plain.find("\nThe peak: step 1, backward\n") != std::string::npos);
  CHECK(plain.find("  Activation  1.00 KiB  100.0 %  results of forward") != std::string::npos);
  CHECK(plain.find("a.b.c") == std::string::npos);
  CHECK(plain.find("cause by cause") == std::string::npos);
  const std::string explained = run(home, {"--depth", "3", "--explain"}).out;
  CHECK(explained.find("\n  a.b.c ") != std::string::npos);
  CHECK(
      explained.find(
          "\nThe peak, cause by cause: 1.00 KiB active; step 1, backward\n  1.00 KiB  100.0 %  Activation: saved.\n") !=
      std::string::npos);
}

TEST_CASE("--no-categories and --depth reach the child") {
  const FakeHome home("printf '%s' \"$PLIMSOLL_RUN\" > \"${0%/.plimsoll/*}/settings\"");
  run(home);
  CHECK(contents(home.path() / "settings").find("\"categories\":true,\"depth\":2,") != std::string::npos);
  run(home, {"--no-categories", "--depth", "5"});
  CHECK(contents(home.path() / "settings").find("\"categories\":false,\"depth\":5,") != std::string::npos);
}

TEST_CASE("JSON to standard output moves the text to standard error") {
  const Called result = run(FakeHome(leave_record("") + "echo printed by the script"), {"--json", "-"});
  CHECK(result.out.starts_with("{\n  \"version\": 2,\n  \"command\": \"run\",\n  \"fits\": true,\n  \"verdict\": {\n"));
  CHECK(result.err.starts_with("\nFits: "));
}

TEST_CASE("--quiet suppresses the report, not the files") {
  const FakeHome home(leave_record("") + "echo snap > \"$(dirname $record)/snapshot.pickle\"");
  const fs::path json = home.path() / "out.json";
  const fs::path snapshot = home.path() / "out.pickle";
  const Called result = run(home, {"--quiet", "--json", json.string(), "--snapshot", snapshot.string()});
  CHECK(result.out.empty());
  CHECK(result.err.empty());
  CHECK(contents(json).starts_with("{\n  \"version\": 2,"));
  CHECK(contents(snapshot) == "snap\n");
}

TEST_CASE("a snapshot that was not written is reported") {
  const FakeHome home(leave_record(""));
  const fs::path snapshot = home.path() / "out.pickle";
  CHECK(run(home, {"--snapshot", snapshot.string()}).err ==
        "plimsoll: no snapshot was written: the script ended before that, or the temporary folder is full\n");
  CHECK_FALSE(fs::exists(snapshot));
}

TEST_CASE("a missing package points to --python, unless that was given") {
  const FakeHome home(
      leave_record(",\"error\":{\"type\":\"ModuleNotFoundError\",\"message\":\"No module named 'x'\"}") + "exit 1");
  const Called missing = run(home);
  CHECK(missing.exit_code == 1);
  CHECK(missing.err ==
        "plimsoll: the script needs a package that Plimsoll's own Python does not have. Name the interpreter that you "
        "train with: plimsoll run --python /path/to/python script.py\n");
  CHECK(run(FakeHome(leave_record(",\"error\":{\"type\":\"ValueError\",\"message\":\"\"}") + "exit 1")).err.empty());
}

TEST_CASE("the child gets the runner, the script, its arguments, the GPU and torchrun's variables") {
  const FakeHome home(
      "printf '%s\\n' \"$@\" \"$RANK/$WORLD_SIZE/$LOCAL_RANK\" \"$PLIMSOLL_GPUS\" > \"${0%/.plimsoll/*}/seen\"\n"
      "cat \"$PLIMSOLL_GPU_PROFILE\" > \"${0%/.plimsoll/*}/profile\"");
  call({"run", "--world-size", "16", "--rank", "9", "--gpu-memory", "40GiB", "-m", "a.b", "--x", "y z"},
       home.installation(), {});
  CHECK(contents(home.path() / "seen") == home.installation().runner().string() + "\n-m\na.b\n--x\ny z\n9/16/1\n8\n");
  CHECK(contents(home.path() / "profile").find("\"memory_bytes\": 42949672960,") != std::string::npos);
}

TEST_CASE("a record that cannot be read is reported, and the others are used") {
  const Called result = run(FakeHome(leave_record("") + "echo broken > $record/0.json"));
  CHECK(result.err.find("plimsoll: the record 0.json: not JSON") != std::string::npos);
  CHECK(result.out.starts_with("\nFits: "));
}

TEST_CASE("bad input is refused before anything is started or written, and nothing is left behind") {
  const FakeHome home("touch \"${0%/.plimsoll/*}/started\"");
  const fs::path temporary = home.path() / "tmp";
  fs::create_directory(temporary);
  setenv("TMPDIR", temporary.c_str(), 1);
  const auto refuse = [&](std::vector<std::string> options, const char* message) {
    options.insert(options.end(), {"--top", "3"});
    if (options[0] != "--json") options.insert(options.end(), {"--json", (home.path() / "out.json").string()});
    CHECK_THROWS_WITH(run(home, options), doctest::Contains(message));
  };
  const std::string broken = (home.path() / "broken.json").string();
  std::ofstream(broken) << "{\"name\": \"mine\"}";
  refuse({"--gpu", "H10-80GB"}, "unknown GPU 'H10-80GB'; did you mean H100-80GB?");
  refuse({"--gpu", broken}, "field 'device_name' is missing");
  refuse({"--rank", "1"}, "--rank 1 does not exist");
  refuse({"--json", "/nowhere/x.json"}, "--json: cannot write /nowhere/x.json");
  refuse({"--snapshot", "/nowhere/x.pickle"}, "--snapshot: cannot write /nowhere/x.pickle");
  refuse({"--python", "/nowhere/python"}, "--python: /nowhere/python does not exist");
  refuse({"--gpu-memory", "1MiB"}, "--gpu-memory 1.00 MiB is too small");
  CHECK_FALSE(fs::exists(home.path() / "started"));
  CHECK_FALSE(fs::exists(home.path() / "out.json"));
  CHECK(fs::is_empty(temporary));
  CHECK(run(home).exit_code == 0);
  CHECK(fs::exists(home.path() / "started"));
  CHECK(fs::is_empty(temporary));
  unsetenv("TMPDIR");
}

TEST_CASE("the message of a child that did not find what to run is bad usage") {
  const FakeHome home("printf '%s' '-m no.such cannot be run: No module named no.such' > $record/bad_usage");
  CHECK_THROWS_WITH_AS(call({"run", "-m", "no.such"}, home.installation(), {}),
                       "-m no.such cannot be run: No module named no.such", plimsoll::InvalidArgument);
}

TEST_CASE("wrong input ends with exit code 2 and one message") {
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
