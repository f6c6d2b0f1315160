#include <doctest/doctest.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cli/fake_home.h"
#include "cli/fake_planning.h"
#include "plimsoll/base/errors.h"
#include "plimsoll/cli/planning.h"
#include "plimsoll/report/document.h"

namespace test_planner {

using namespace plimsoll::cli;
namespace fs = std::filesystem;

namespace {

/// A program in the place of plimsoll-planner. $report is a document of `plan`; `$id` of "$line" by the function id.
class FakeWorker {
 public:
  explicit FakeWorker(const std::string& body) {
    std::ofstream(folder_.path() / "report.json")
        << plimsoll::report::to_json(report_of(true), plimsoll::report::JsonForm::kOneLine);
    FakeHome::write_program(program(), "folder='" + folder_.path().string() +
                                           "'\nreport=$(cat \"$folder/report.json\")\n"
                                           "id() { line=${line#*:}; printf '%s' \"${line%%,*}\"; }\n" +
                                           body);
  }

  fs::path program() const { return folder_.path() / "plimsoll-planner"; }
  std::string contents(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_.path() / name).rdbuf();
    return text.str();
  }

 private:
  TemporaryFolder folder_;
};

const std::string kAnswers = "while read -r line; do printf '{\"id\":%s,\"report\":%s}\\n' \"$(id)\" \"$report\"; done";

std::vector<PlanRequest> requests(std::size_t count) {
  PlanRequest request;
  request.job.model = "llama3-8b";
  request.profile = "/p.json";
  return std::vector<PlanRequest>(count, request);
}

std::string message_of(const std::string& body) {
  const FakeWorker worker(body);
  Planner planner(worker.program(), 1);
  std::string message;
  try {
    planner.run(requests(1));
  } catch (const PlanningFailed& error) {
    message = error.what();
  }
  const std::string start = "the planner " + worker.program().string() + " ";
  CHECK(message.starts_with(start));
  return message.substr(std::min(start.size(), message.size()));
}

/// Ended, or a zombie.
bool is_gone(const std::string& process) {
  std::string stat;
  std::getline(std::ifstream("/proc/" + process + "/stat"), stat);
  return stat.empty() || stat.find(") Z ") != std::string::npos;
}

void wait_until_gone(const std::string& process) {
  REQUIRE(std::atoi(process.c_str()) > 0);
  for (int i = 0; i < 500 && !is_gone(process); ++i) usleep(10'000);
  CHECK(is_gone(process));
}

}  // namespace

TEST_CASE("a request is one line, its answer a report") {
  const FakeWorker worker(
      "read -r line; printf '%s' \"$line\" > \"$folder/request\"; echo \"$1\" > \"$folder/processes\"\n"
      "printf '{\"id\":0,\"report\":%s}\\n' \"$report\"");
  Planner planner(worker.program(), 3);
  auto asked = requests(1);
  asked[0].job.gpus = 16;
  asked[0].depth = 4;
  asked[0].log = "/l";
  const auto outcomes = planner.run(asked);
  REQUIRE(outcomes.at(0).report.has_value());
  CHECK(outcomes[0].report->planned()->model.parameters == 8030261248);
  CHECK(worker.contents("processes") == "3\n");
  const std::string line = worker.contents("request");
  CHECK(line.starts_with("{\"id\":0,\"job\":{\"model\":\"llama3-8b\","));
  CHECK(line.find("\"gpus\":16,") != std::string::npos);
  CHECK(line.ends_with(",\"profile\":\"/p.json\",\"depth\":4,\"log\":\"/l\",\"snapshot\":null}"));
}

TEST_CASE("the program stays for the next questions, and errors are outcomes") {
  const FakeWorker worker(
      "echo x >> \"$folder/started\"\nwhile read -r line; do i=$(id)\n"
      "case $i in 1) printf '{\"id\":1,\"error\":\"too wide\",\"usage\":true}\\n';;\n"
      "2) printf '{\"id\":2,\"error\":\"died\",\"usage\":false}\\n';;\n"
      "*) printf '{\"id\":%s,\"report\":%s}\\n' $i \"$report\";; esac; done");
  Planner planner(worker.program(), 1);
  CHECK(planner.run({}).empty());
  CHECK(planner.run(requests(1)).at(0).report.has_value());
  const auto failed = planner.run(requests(2));
  CHECK(failed.at(0).error == "too wide");
  CHECK(failed.at(0).usage);
  CHECK(failed.at(1).error == "died");
  CHECK_FALSE(failed.at(1).usage);
  CHECK(planner.run(requests(1)).at(0).report.has_value());
  CHECK(worker.contents("started") == "x\n");
}

TEST_CASE("answers find their requests in any order, and are told as they come") {
  const FakeWorker worker(
      "read -r a; read -r b; read -r c\n"
      "for i in 2 0 1; do printf '{\"id\":%s,\"error\":\"e%s\",\"usage\":false}\\n' $i $i; done");
  Planner planner(worker.program(), 1);
  std::vector<std::size_t> told;
  const auto outcomes = planner.run(requests(3), [&](std::size_t index, const PlanOutcome&) { told.push_back(index); });
  CHECK(told == std::vector<std::size_t>{2, 0, 1});
  for (std::size_t i = 0; i < 3; ++i) CHECK(outcomes.at(i).error == "e" + std::to_string(i));
}

TEST_CASE("many requests and long answers pass each other") {
  // More each way than a socket holds: who wrote all before reading would wait for ever.
  const FakeWorker worker(
      "padding=$(printf '%0100000d' 0)\n"
      "while read -r line; do printf '{\"id\":%s,\"error\":\"%s\",\"usage\":false}\\n' \"$(id)\" $padding; done");
  Planner planner(worker.program(), 1);
  const auto outcomes = planner.run(requests(600));
  REQUIRE(outcomes.size() == 600);
  for (const auto& outcome : outcomes) CHECK(outcome.error.size() == 100'000);
}

TEST_CASE("the end of a program that dies is reported, with its last message") {
  CHECK(message_of("read -r line; kill -9 $$") == "was ended by signal 9 (Killed): the machine may be out of memory");
  CHECK(message_of("read -r line; kill -11 $$").starts_with("was ended by signal 11 (Segmentation fault)"));
  CHECK(message_of("exit 3") == "ended with exit code 3");
  CHECK(message_of("echo first >&2; echo 'libtorch.so: cannot open' >&2; exit 127") ==
        "ended with exit code 127; last message: libtorch.so: cannot open");
  CHECK(message_of("exec >&- <&-; sleep 60") == "closed its output and did not end");
}

TEST_CASE("an answer that is not valid is refused by name") {
  const std::string start = "gave an invalid answer: answer: ";
  CHECK(message_of("echo hello; sleep 60") == start + "not JSON: it goes wrong at byte 1");
  CHECK(message_of("echo '{\"report\":{}}'; sleep 60") == start + "field 'id' is missing");
  CHECK(message_of("echo '{\"id\":0}'; sleep 60") == start + "field 'error' is missing");
  CHECK(message_of("echo '{\"id\":0,\"report\":{\"version\":7}}'; sleep 60") ==
        start + "field 'report.version' must be 1 or 2, found 7");
  CHECK(message_of("echo '{\"id\":8,\"error\":\"x\",\"usage\":false}'; sleep 60") ==
        "answered a request that it did not get (id 8): is it of another version?");
}

TEST_CASE("a program that cannot be started is named") {
  CHECK_THROWS_WITH_AS(Planner("/nowhere/plimsoll-planner", 1),
                       "cannot start the planner /nowhere/plimsoll-planner: No such file or directory",
                       plimsoll::SystemError);
}

TEST_CASE("the end of the planner is the end of all that it started") {
  const FakeWorker worker("sleep 300 &\necho $! > \"$folder/child\"; echo $$ > \"$folder/self\"\n" + kAnswers);
  {
    Planner planner(worker.program(), 1);
    planner.run(requests(1));
  }
  wait_until_gone(worker.contents("child").substr(0, worker.contents("child").find('\n')));
  wait_until_gone(worker.contents("self").substr(0, worker.contents("self").find('\n')));
}

TEST_CASE("signals end the run, and what ran with it") {
  for (const auto& [name, number] : {std::pair{"INT", SIGINT}, std::pair{"TERM", SIGTERM}, std::pair{"HUP", SIGHUP}}) {
    CAPTURE(name);
    const FakeWorker worker("echo $$ > \"$folder/self\"; read -r line; kill -" + std::string(name) +
                            " $PPID; sleep 300");
    int caught = 0;
    {
      Planner planner(worker.program(), 1);
      try {
        planner.run(requests(1));
      } catch (const Interrupted& interrupted) {
        caught = interrupted.signal;
      }
    }
    CHECK(caught == number);
    wait_until_gone(worker.contents("self").substr(0, worker.contents("self").find('\n')));
  }
}

TEST_CASE("the planner is beside the command, unless PLIMSOLL_PLANNER names it") {
  const FakeWorker worker(kAnswers);
  const Installation installation{"/home/x", worker.program().parent_path()};
  unsetenv("PLIMSOLL_PLANNER");
  CHECK(find_planner(installation) == worker.program());
  CHECK_THROWS_WITH_AS(find_planner({"/home/x", "/nowhere"}),
                       "there is no /nowhere/plimsoll-planner, which runs the jobs: plimsoll was set up with a CPU "
                       "build of torch, or the "
                       "build is not complete. Planning needs a CUDA build of torch, though no GPU: remove "
                       "/home/x/.plimsoll/venv, let pip "
                       "find a CUDA build, and run ./plimsoll in /home/x, which sets up again",
                       PlanningFailed);
  Installation package{"/site/plimsoll", "/nowhere"};
  package.layout = Layout::kPackage;
  CHECK_THROWS_WITH_AS(find_planner(package),
                       "there is no /nowhere/plimsoll-planner, which runs the jobs: this package was built with a CPU "
                       "build of torch. Planning needs a CUDA build, though no GPU: install one, and the package again",
                       PlanningFailed);
  setenv("PLIMSOLL_PLANNER", worker.program().c_str(), 1);
  CHECK(find_planner({"/home/x", "/nowhere"}) == worker.program());
  setenv("PLIMSOLL_PLANNER", "/nowhere/planner", 1);
  CHECK_THROWS_WITH_AS(
      find_planner(installation),
      "PLIMSOLL_PLANNER is /nowhere/planner, which is not a program that can be run: unset it, or give "
      "the path of a plimsoll-planner",
      PlanningFailed);
  unsetenv("PLIMSOLL_PLANNER");
}

}  // namespace test_planner
