#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "cli/fake_planning.h"
#include "plimsoll/base/errors.h"
#include "plimsoll/cli/commands/commands.h"
#include "plimsoll/cli/output_file.h"
#include "plimsoll/job/model.h"

namespace test_document_commands {

using namespace plimsoll::cli;
using plimsoll::FormatError;
using plimsoll::InvalidArgument;

TEST_CASE("compare shows two documents") {
  const TemporaryFolder folder;
  const std::string a = (folder.path() / "a.json").string();
  const std::string b = (folder.path() / "b.json").string();
  std::ofstream(a) << plimsoll::report::to_json(report_of(true));
  std::ofstream(b) << plimsoll::report::to_json(report_of(false));
  std::ostringstream out;
  std::ostringstream err;
  const Streams streams{.out = out, .err = err};
  CHECK(compare_command({.a = a, .b = b}, streams) == 0);
  CHECK(out.str().find("89.00 GiB") != std::string::npos);
  CHECK(compare_command({.a = a, .b = b, .report = {.json = "-"}}, streams) == 0);
  CHECK(out.str().find("\"command\": \"compare\"") != std::string::npos);
  CHECK_THROWS_WITH_AS(compare_command({.a = "/nowhere.json", .b = b}, streams), "no such document: /nowhere.json",
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(compare_command({.a = a, .b = "/"}, streams), "/ is a folder: name a document in it",
                       InvalidArgument);
  std::ofstream(b) << "{";
  CHECK_THROWS_WITH_AS(compare_command({.a = a, .b = b}, streams), doctest::Contains("b.json"), FormatError);
}

TEST_CASE("models are listed with their sizes, and one is printed as a config that can be planned with") {
  std::ostringstream out;
  std::ostringstream err;
  const Streams streams{.out = out, .err = err};
  CHECK(models_command({}, streams) == 0);
  CHECK(
      out.str().find("llama3-8b         llama          8.03 B    8030261248      32   4096      32/8      128256\n") !=
      std::string::npos);
  out.str("");
  CHECK(models_command({"Llama3-8B"}, streams) == 0);
  CHECK(out.str().starts_with("{\n  \"model_type\": \"llama\",\n"));
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "config.json") << out.str();
  CHECK(plimsoll::job::find_model(folder.path().string()).blocks == 32);
  CHECK_THROWS_WITH_AS(models_command({"lama3-8b"}, streams),
                       "no config is known for 'lama3-8b': did you mean llama3-8b? `plimsoll models` lists all",
                       InvalidArgument);
}

}  // namespace test_document_commands
