#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/call_command.h"
#include "cli/fake_planning.h"
#include "plimsoll/cli/documents.h"

namespace test_plan_commands {

using namespace plimsoll::cli;
using plimsoll::InvalidArgument;
namespace fs = std::filesystem;

namespace {

const Installation kInstallation{PLIMSOLL_SOURCE_DIR, "/nowhere"};

/// A command for llama3-8b.
Called call(const std::string& command, std::vector<std::string> options, FakeStart& fake) {
  options.insert(options.begin(), {command, "llama3-8b"});
  return ::call(options, kInstallation, fake.start());
}

FakePlanning::Answer always(bool fits) {
  return [fits](const PlanRequest&) { return PlanOutcome{.report = report_of(fits)}; };
}

FakePlanning::Answer failing(bool usage) {
  return [usage](const PlanRequest&) { return PlanOutcome{.error = "it broke", .usage = usage}; };
}

std::string contents(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("plan answers with its exit code: 0 fits, 3 does not") {
  FakeStart fits(always(true));
  const Called good = call("plan", {}, fits);
  CHECK(good.exit_code == 0);
  CHECK(good.out.starts_with("Fits: 1.00 of 80.00 GiB used on an H100-80GB"));
  CHECK(good.out.find("\n  Peak: ") != std::string::npos);
  CHECK(good.err.empty());
  CHECK(fits.processes == 1);
  REQUIRE(fits.planning->asked.size() == 1);
  CHECK(fits.planning->asked[0].profile == kInstallation.profiles() / "H100-80GB.json");
  CHECK(fits.planning->asked[0].depth == 2);
  FakeStart too_large(always(false));
  CHECK(call("plan", {}, too_large).exit_code == 3);
}

TEST_CASE("only a wrong job is bad usage; other failures are not") {
  FakeStart wrong(failing(true));
  CHECK_THROWS_WITH_AS(call("plan", {}, wrong), "it broke", InvalidArgument);
  FakeStart broken(failing(false));
  CHECK_THROWS_WITH_AS(call("plan", {}, broken), "it broke", PlanningFailed);
}

TEST_CASE("quiet is the verdict alone") {
  FakeStart fake(always(true));
  const Called result = call("plan", {"--quiet"}, fake);
  CHECK(result.out == "Fits: 1.00 of 80.00 GiB used on an H100-80GB, 79.00 GiB left.\n");
}

TEST_CASE("plan prints a short report, and all tables with --full") {
  FakeStart fake(always(true));
  CHECK(call("plan", {}, fake).out.find("  free") != std::string::npos);
  CHECK(call("plan", {}, fake).out.find("what it counts") == std::string::npos);
  CHECK(call("plan", {"--full"}, fake).out.find("what it counts") != std::string::npos);
}

TEST_CASE("memory that --reserve holds back counts against the verdict of plan, sweep and fit") {
  FakeStart fake(always(true));
  CHECK(call("plan", {"--reserve", "79GiB"}, fake).exit_code == 0);
  const Called plan = call("plan", {"--reserve", "80GiB"}, fake);
  CHECK(plan.exit_code == 3);
  CHECK(
      plan.out.starts_with("Does not fit: 1.00 of 80.00 GiB used on an H100-80GB, 79.00 GiB left, less than the "
                           "reserve of 80.00 GiB.\n"));
  CHECK(call("sweep", {"--batch", "1,2", "--reserve", "80GiB"}, fake).exit_code == 3);
  CHECK(call("fit", {"--maximize", "batch", "--limit", "2", "--reserve", "80GiB"}, fake).exit_code == 3);
}

TEST_CASE("a document on standard output moves the text to standard error") {
  FakeStart fake(always(true));
  const Called result = call("plan", {"--json", "-"}, fake);
  CHECK(result.out.starts_with("{\n  \"version\": 2,\n  \"command\": \"plan\","));
  CHECK(result.err.starts_with("Fits: "));
}

TEST_CASE("only whole files are moved into place") {
  const TemporaryFolder folder;
  FakeStart fake([](const PlanRequest& request) {
    std::ofstream(*request.log) << "events";
    std::ofstream(*request.snapshot) << "snap";
    return PlanOutcome{.report = report_of(true)};
  });
  const auto in_folder = [&](const char* name) { return (folder.path() / name).string(); };
  CHECK(call("plan", {"--json", in_folder("r.json"), "--log", in_folder("l"), "--snapshot", in_folder("s")}, fake)
            .exit_code == 0);
  CHECK(contents(in_folder("r.json")).starts_with("{\n  \"version\": 2,"));
  CHECK(contents(in_folder("l")) == "events");
  CHECK(contents(in_folder("s")) == "snap");
  FakeStart forgets(always(true));
  CHECK(call("plan", {"--log", in_folder("l2"), "--snapshot", in_folder("s")}, forgets).err ==
        "plimsoll: no log was written: the job ended before that\n"
        "plimsoll: no snapshot was written: the job ended before that\n");
  CHECK_FALSE(fs::exists(in_folder("l2")));
}

TEST_CASE("wrong input is refused before anything is started or written") {
  const TemporaryFolder folder;
  const auto refuse = [&](const std::vector<std::string>& arguments, const std::string& message) {
    FakeStart fake(always(true));
    CHECK_THROWS_WITH(::call(arguments, kInstallation, fake.start()), doctest::Contains(message.c_str()));
    CHECK(fake.processes == 0);
  };
  refuse({"plan", "llama3-8b", "--json", "/nowhere/x.json"}, "--json: cannot write /nowhere/x.json");
  refuse({"plan", "llama3-8b", "--log", "/nowhere/x"}, "--log: cannot write /nowhere/x");
  refuse({"plan", "llama3-8b", "--snapshot", "/nowhere/x"}, "--snapshot: cannot write /nowhere/x");
  refuse({"plan", "llama3-8b", "--snapshot", "-"}, "--snapshot needs the name of a file: it is not text");
  refuse({"plan", "lama3-8b"}, "unknown model 'lama3-8b'; did you mean llama3-8b");
  refuse({"plan", "llama3-8b", "--gpu", "H10-80GB"}, "unknown GPU 'H10-80GB'; did you mean H100-80GB?");
  refuse({"plan", "llama3-8b", "--gpu-memory", "1MiB"},
         "--gpu-memory 1.00 MiB is too small: the CUDA context of a process takes ");
  refuse({"plan", "llama3-8b", "--checkpoint", "ful"}, "did you mean full?");
  refuse({"plan", "llama3-8b", "--rank", "8"}, "--rank 8 does not exist: the ranks of --gpus 8 are 0 to 7");
  const std::string file = (folder.path() / "j.toml").string();
  std::ofstream(file) << "gpus = 16\n";
  refuse({"plan", "--job", file}, "no MODEL given, and " + file + " names none: write model = \"llama3-8b\" in it");
}

TEST_CASE("flags go over the job's file") {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "j.toml").string();
  std::ofstream(file) << "model = \"llama3-8b\"\ngpus = 16\nbatch = 4\n";
  FakeStart fake(always(true));
  ::call({"plan", "--job", file, "--gpus", "32"}, kInstallation, fake.start());
  CHECK(fake.planning->asked.at(0).job.gpus == 32);
  CHECK(fake.planning->asked.at(0).job.batch == 4);
}

TEST_CASE("ignored fields and used defaults of a torchtitan file are listed") {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "titan.toml").string();
  std::ofstream(file) << "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nsteps = 100\nseq_len = 2048\n";
  FakeStart fake(always(true));
  const Called result = ::call({"plan", "--job", file}, kInstallation, fake.start());
  CHECK(result.err.find("plimsoll: " + file + " is a torchtitan file; ignored, no effect on memory: ") !=
        std::string::npos);
  CHECK(result.err.find("training.steps") != std::string::npos);
  CHECK(result.err.find("; torchtitan's defaults are used for: ") != std::string::npos);
}

TEST_CASE("explain runs the job and every change, and answers as plan does") {
  FakeStart fake([](const PlanRequest& request) {
    if (request.job.wrap.blocks == 0) return PlanOutcome{.error = "it broke"};
    const bool saves = request.job.checkpoint.kind == plimsoll::job::CheckpointKind::kFull;
    return PlanOutcome{.report = report_of(true, plimsoll::Bytes{saves ? 1U : 2U} << 30)};
  });
  const Called result = call("explain", {"--processes", "3"}, fake);
  CHECK(result.exit_code == 0);
  CHECK(fake.processes == 3);
  CHECK(fake.planning->batches == std::vector<std::size_t>{17});
  CHECK(result.out.find("  --checkpoint full  1.00 GiB") != std::string::npos);
  CHECK(result.out.find("--wrap root could not be tried: it broke") != std::string::npos);
  const Called json = call("explain", {"--json"}, fake);
  const auto document = nlohmann::json::parse(json.out);
  CHECK(document["command"] == "explain");
  CHECK(document["report"]["command"] == "plan");
  CHECK(document["changes"].size() == 16);
  CHECK(document["changes"][1]["change"] == "--checkpoint full");
  CHECK(document["changes"][1]["report"]["peak"]["device_bytes"] == 1 << 30);
  CHECK(json.err == result.out);
  FakeStart too_large(always(false));
  CHECK(call("explain", {"--quiet"}, too_large).exit_code == 3);
  CHECK(too_large.planning->asked.size() == 1);
}

TEST_CASE("fit reports the limit, or that nothing fits") {
  FakeStart fake([](const PlanRequest& request) {
    return PlanOutcome{.report = report_of(request.job.batch * request.job.seq_len.value_or(8192) <= 5 * 8192)};
  });
  const Called batch = call("fit", {"--maximize", "batch", "--processes", "2"}, fake);
  CHECK(batch.exit_code == 0);
  CHECK(batch.out.starts_with("Largest batch: 5; "));
  CHECK(batch.out.find("Only the values listed were run. Jobs with smaller values of batch are assumed to fit.") !=
        std::string::npos);
  const Called sequence = call("fit", {"--maximize", "seq-len", "--json"}, fake);
  CHECK(sequence.out.find("\"command\": \"fit\"") != std::string::npos);
  CHECK(sequence.err.starts_with("Longest sequence (in steps of 128): 40960; "));
  CHECK(sequence.err.find("The model's config states 8192 positions.") != std::string::npos);
  FakeStart never(always(false));
  const Called none = call("fit", {"--minimize", "gpus", "--limit", "16", "--json"}, never);
  CHECK(none.exit_code == 3);
  CHECK(none.err.starts_with("Does not fit: not even with gpus 16"));
}

TEST_CASE("the flag that fit searches for cannot be given") {
  FakeStart fake(always(true));
  CHECK_THROWS_WITH_AS(call("fit", {"--maximize", "batch", "--batch", "4"}, fake),
                       "--batch cannot be given: fit searches for it. To bound the search give --limit",
                       InvalidArgument);
  CHECK(fake.processes == 0);
}

TEST_CASE("sweep lists all rows, and one that fits is enough") {
  const auto sweep = [](std::vector<std::string> options, FakeStart& start) {
    options.insert(options.end(), {"--processes", "64", "--gpus", "4,8", "--replicas", "1,8"});
    return call("sweep", options, start);
  };
  FakeStart fake(
      [](const PlanRequest& request) { return PlanOutcome{.report = report_of(request.job.replicas == 8)}; });
  const Called text = sweep({}, fake);
  CHECK(text.exit_code == 0);
  CHECK(text.out.starts_with("Fits: 1 of 4 combinations of llama3-8b (H100-80GB, 79.11 GiB), 1 could not be run\n"));
  CHECK(fake.processes == 3);
  CHECK(fake.planning->asked.size() == 3);
  const Called csv = sweep({"--csv"}, fake);
  CHECK(csv.out.starts_with("gpus,replicas,fits,outcome,"));
  CHECK(csv.out.find("\n4,8,,not run,,,,,,,,,,--replicas 8 does not divide") != std::string::npos);
  CHECK(csv.err.starts_with("Fits: 1 of 4"));
  CHECK(sweep({"--json"}, fake).out.find("\"command\": \"sweep\"") != std::string::npos);

  FakeStart none(always(false));
  CHECK(sweep({}, none).exit_code == 3);
  FakeStart broken(failing(false));
  CHECK(sweep({}, broken).exit_code == 1);
  FakeStart unwritable(always(true));
  CHECK_THROWS_WITH_AS(sweep({"--csv", "/nowhere/x.csv"}, unwritable), doctest::Contains("--csv: cannot write"),
                       InvalidArgument);
  CHECK(unwritable.processes == 0);
}

TEST_CASE("a document that cannot be written at the end is a failure, not bad usage") {
  const TemporaryFolder folder;
  const fs::path inner = folder.path() / "inner";
  fs::create_directory(inner);
  FakeStart fake([&](const PlanRequest&) {
    fs::remove(inner);
    return PlanOutcome{.report = report_of(true)};
  });
  CHECK_THROWS_WITH_AS(call("plan", {"--json", (inner / "r.json").string()}, fake), doctest::Contains("cannot write"),
                       plimsoll::SystemError);
}

TEST_CASE("exit code 1 if the job cannot be run, 2 for wrong input") {
  std::ostringstream out;
  std::ostringstream err;
  const Streams streams{.out = out, .err = err};
  setenv("PLIMSOLL_PLANNER", "/nowhere/planner", 1);
  CHECK(plimsoll_main({"plan", "llama3-8b"}, streams) == 1);
  CHECK(err.str().starts_with("plimsoll: PLIMSOLL_PLANNER is /nowhere/planner"));
  unsetenv("PLIMSOLL_PLANNER");
  CHECK(plimsoll_main({"plan", "llama3-8b", "--gpus", "0"}, streams) == 2);
  CHECK(plimsoll_main({"plan", "/nowhere/config.json"}, streams) == 2);
  CHECK(plimsoll_main({"models"}, streams) == 0);
}

}  // namespace test_plan_commands
