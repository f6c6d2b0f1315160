#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cli/fake_home.h"
#include "cli/fake_planning.h"
#include "plimsoll/base/errors.h"
#include "plimsoll/cli/commands/commands.h"

namespace test_plan_commands {

using namespace plimsoll::cli;
using plimsoll::InvalidArgument;
namespace fs = std::filesystem;

namespace {

const Installation kInstallation{PLIMSOLL_SOURCE_DIR, "/nowhere"};
const JobOptions kJob{.file = std::nullopt, .flags = {{"model", "llama3-8b"}}};

struct Result {
  int exit_code = 0;
  std::string out;
  std::string err;
};

template <typename Options, typename Command>
Result call(Command command, const Options& options, FakeStart& fake) {
  std::ostringstream out;
  std::ostringstream err;
  const int exit_code = command(options, kInstallation, fake.start(), Streams{.out = out, .err = err});
  return {exit_code, out.str(), err.str()};
}

Result plan(PlanOptions options, FakeStart& fake) {
  if (options.job.flags.empty() && !options.job.file) options.job = kJob;
  return call(plan_command, options, fake);
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
  const Result good = plan({}, fits);
  CHECK(good.exit_code == 0);
  CHECK(good.out.starts_with("fits: 1.00 GiB of 80.00 GiB on the device book"));
  CHECK(good.out.find("\nThe peak: ") != std::string::npos);
  CHECK(good.err.empty());
  CHECK(fits.processes == 1);
  REQUIRE(fits.planning->asked.size() == 1);
  CHECK(fits.planning->asked[0].profile == kInstallation.profiles() / "H100-80GB.json");
  CHECK(fits.planning->asked[0].depth == 2);
  FakeStart too_large(always(false));
  CHECK(plan({}, too_large).exit_code == 3);
}

TEST_CASE("a job that the run finds wrong is bad usage, any other failure is not") {
  FakeStart wrong(failing(true));
  CHECK_THROWS_WITH_AS(plan({}, wrong), "it broke", InvalidArgument);
  FakeStart broken(failing(false));
  CHECK_THROWS_WITH_AS(plan({}, broken), "it broke", PlanningFailed);
}

TEST_CASE("quiet is the verdict alone") {
  FakeStart fake(always(true));
  const Result result = plan({.report = {.quiet = true}}, fake);
  CHECK(result.out == "fits: 1.00 GiB of 80.00 GiB on the device book, 79.00 GiB to spare (H100-80GB)\n");
}

TEST_CASE("a document on standard output moves the text to standard error") {
  FakeStart fake(always(true));
  const Result result = plan({.report = {.json = "-"}}, fake);
  CHECK(result.out.starts_with("{\n  \"version\": 1,\n  \"command\": \"plan\","));
  CHECK(result.err.starts_with("fits: "));
}

TEST_CASE("files are put into place when they are whole") {
  const TemporaryFolder folder;
  FakeStart fake([](const PlanRequest& request) {
    std::ofstream(*request.log) << "events";
    std::ofstream(*request.snapshot) << "snap";
    return PlanOutcome{.report = report_of(true)};
  });
  PlanOptions options{.report = {.json = (folder.path() / "r.json").string()},
                      .log = (folder.path() / "l").string(),
                      .snapshot = (folder.path() / "s").string()};
  CHECK(plan(options, fake).exit_code == 0);
  CHECK(contents(*options.report.json).starts_with("{\n  \"version\": 1,"));
  CHECK(contents(*options.log) == "events");
  CHECK(contents(*options.snapshot) == "snap");
  FakeStart forgets(always(true));
  options.log = (folder.path() / "l2").string();
  CHECK(plan(options, forgets).err ==
        "plimsoll: there is no log: the run did not write one\n"
        "plimsoll: there is no snapshot: the run did not write one\n");
  CHECK_FALSE(fs::exists(*options.log));
}

TEST_CASE("what is wrong is told before anything is started or written") {
  const TemporaryFolder folder;
  const auto refuse = [&](const PlanOptions& options, const char* message) {
    FakeStart fake(always(true));
    CHECK_THROWS_WITH(plan(options, fake), doctest::Contains(message));
    CHECK(fake.processes == 0);
  };
  const auto flags = [](std::vector<plimsoll::job::Setting> list) {
    list.insert(list.begin(), {"model", "llama3-8b"});
    return PlanOptions{.job = {.file = std::nullopt, .flags = std::move(list)}};
  };
  refuse({.report = {.json = "/nowhere/x.json"}}, "--json: cannot write /nowhere/x.json");
  refuse({.log = "/nowhere/x"}, "--log: cannot write /nowhere/x");
  refuse({.snapshot = "/nowhere/x"}, "--snapshot: cannot write /nowhere/x");
  refuse({.snapshot = "-"}, "--snapshot needs the name of a file: it is not text");
  refuse(flags({{"model", "lama3-8b"}}), "unknown model 'lama3-8b'; did you mean llama3-8b");
  refuse(flags({{"gpu", "H10-80GB"}}), "unknown GPU 'H10-80GB'; did you mean H100-80GB?");
  refuse(flags({{"gpu-memory", "1MiB"}}), "--gpu-memory 1.00 MiB does not even hold the context of a process");
  refuse(flags({{"checkpoint", "ful"}}), "did you mean full?");
  refuse(flags({{"rank", "8"}}), "--rank 8 is none of the 8 ranks");
  std::ofstream(folder.path() / "j.toml") << "gpus = 16\n";
  const std::string file = (folder.path() / "j.toml").string();
  refuse({.job = {.file = file, .flags = {}}},
         ("no MODEL given, and " + file + " names none: write model = \"llama3-8b\" in it").c_str());
}

TEST_CASE("flags go over the job's file") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "j.toml") << "model = \"llama3-8b\"\ngpus = 16\nbatch = 4\n";
  FakeStart fake(always(true));
  plan({.job = {.file = (folder.path() / "j.toml").string(), .flags = {{"gpus", "32"}}}}, fake);
  CHECK(fake.planning->asked.at(0).job.gpus == 32);
  CHECK(fake.planning->asked.at(0).job.batch == 4);
}

TEST_CASE("of torchtitan's files it is told what was passed over and assumed") {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "titan.toml").string();
  std::ofstream(file) << "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nsteps = 100\nseq_len = 2048\n";
  FakeStart fake(always(true));
  const Result result = plan({.job = {.file = file, .flags = {}}}, fake);
  CHECK(result.err.find("plimsoll: " + file +
                        " is read as torchtitan's; passed over, as they change no memory here: ") != std::string::npos);
  CHECK(result.err.find("training.steps") != std::string::npos);
  CHECK(result.err.find("; not in it, so as by default there: ") != std::string::npos);
}

TEST_CASE("explain runs the job and every change, and answers as plan does") {
  FakeStart fake([](const PlanRequest& request) {
    if (request.job.wrap.blocks == 0) return PlanOutcome{.error = "it broke"};
    const bool saves = request.job.checkpoint.kind == plimsoll::job::CheckpointKind::kFull;
    return PlanOutcome{.report = report_of(true, plimsoll::Bytes{saves ? 1U : 2U} << 30)};
  });
  const Result result = call(explain_command, ExplainOptions{.job = kJob, .processes = 3}, fake);
  CHECK(result.exit_code == 0);
  CHECK(fake.processes == 3);
  CHECK(fake.planning->batches == std::vector<std::size_t>{17});
  CHECK(result.out.find("  --checkpoint full  1.00 GiB") != std::string::npos);
  CHECK(result.out.find("--wrap root could not be tried: it broke") != std::string::npos);
  FakeStart too_large(always(false));
  CHECK(call(explain_command, ExplainOptions{.job = kJob, .report = {.quiet = true}}, too_large).exit_code == 3);
  CHECK(too_large.planning->asked.size() == 1);
}

TEST_CASE("fit says the limit, or that nothing fits") {
  FakeStart fake([](const PlanRequest& request) {
    return PlanOutcome{.report = report_of(request.job.batch * request.job.seq_len.value_or(8192) <= 5 * 8192)};
  });
  FitOptions options{.job = kJob, .processes = 2};
  const Result batch = call(fit_command, options, fake);
  CHECK(batch.exit_code == 0);
  CHECK(batch.out.starts_with("fits: batch 5 at most; "));
  CHECK(batch.out.find("Every value tried was run; that a job which fits also fits with a smaller batch is assumed.") !=
        std::string::npos);
  options.search = FitOptions::Search::kSeqLen;
  options.report.json = "-";
  const Result sequence = call(fit_command, options, fake);
  CHECK(sequence.out.find("\"command\": \"fit\"") != std::string::npos);
  CHECK(sequence.err.starts_with("fits: seq-len 40960 at most; "));
  CHECK(sequence.err.find("was made for 8192") != std::string::npos);
  options.search = FitOptions::Search::kGpus;
  options.limit = 16;
  FakeStart never(always(false));
  const Result none = call(fit_command, options, never);
  CHECK(none.exit_code == 3);
  CHECK(none.err.starts_with("does not fit: not even with gpus 16"));
}

TEST_CASE("what fit looks for cannot be given too") {
  FakeStart fake(always(true));
  FitOptions options{.job = kJob};
  options.job.flags.push_back({"batch", "4"});
  CHECK_THROWS_WITH_AS(call(fit_command, options, fake),
                       "--batch is what fit looks for: leave it out, or bound the search with --limit",
                       InvalidArgument);
  CHECK(fake.processes == 0);
}

TEST_CASE("sweep lists all rows, and one that fits is enough") {
  SweepOptions options{.job = kJob, .processes = 64};
  options.job.flags.insert(options.job.flags.end(), {{"gpus", "4,8"}, {"replicas", "1,8"}});
  FakeStart fake(
      [](const PlanRequest& request) { return PlanOutcome{.report = report_of(request.job.replicas == 8)}; });
  const Result text = call(sweep_command, options, fake);
  CHECK(text.exit_code == 0);
  CHECK(text.out.starts_with("fits: 1 of 4 combinations of llama3-8b (H100-80GB, 79.11 GiB), 1 could not be run\n"));
  CHECK(fake.processes == 3);
  CHECK(fake.planning->asked.size() == 3);
  options.csv = "-";
  const Result csv = call(sweep_command, options, fake);
  CHECK(csv.out.starts_with("gpus,replicas,fits,"));
  CHECK(csv.out.find("\n4,8,,,,,,,,,,,--replicas 8 does not divide") != std::string::npos);
  CHECK(csv.err.starts_with("fits: 1 of 4"));
  options.csv = {};
  options.report.json = "-";
  CHECK(call(sweep_command, options, fake).out.find("\"command\": \"sweep\"") != std::string::npos);

  FakeStart none(always(false));
  CHECK(call(sweep_command, options, none).exit_code == 3);
  FakeStart broken(failing(false));
  CHECK(call(sweep_command, options, broken).exit_code == 1);
  options.csv = "/nowhere/x.csv";
  FakeStart unwritable(always(true));
  CHECK_THROWS_WITH_AS(call(sweep_command, options, unwritable), doctest::Contains("--csv: cannot write"),
                       InvalidArgument);
  CHECK(unwritable.processes == 0);
}

TEST_CASE("documents that cannot be written after all are a failure, not bad usage") {
  const TemporaryFolder folder;
  const fs::path inner = folder.path() / "inner";
  fs::create_directory(inner);
  FakeStart fake([&](const PlanRequest&) {
    fs::remove(inner);
    return PlanOutcome{.report = report_of(true)};
  });
  CHECK_THROWS_WITH_AS(plan({.report = {.json = (inner / "r.json").string()}}, fake), doctest::Contains("cannot write"),
                       PlanningFailed);
}

TEST_CASE("the whole command: what cannot be run is exit code 1, what makes no sense 2") {
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
