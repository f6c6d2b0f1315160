#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/call_command.h"
#include "cli/fake_planning.h"
#include "plimsoll/architecture/architecture.h"
#include "plimsoll/cli/documents.h"
#include "plimsoll/job/model.h"
#include "plimsoll/report/document.h"

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
  const Called text = call({"compare", a, b});
  CHECK(text.exit_code == 0);
  CHECK(text.out.find("89.00 GiB") != std::string::npos);
  CHECK(call({"compare", a, b, "--json"}).out.find("\"command\": \"compare\"") != std::string::npos);
  CHECK(refusal_of({"compare", "/nowhere.json", b}) == "no such document: /nowhere.json");
  CHECK(refusal_of({"compare", a, "/"}) == "/ is a folder: name a document in it");
  std::ofstream(b) << "{";
  CHECK_THROWS_WITH_AS(call({"compare", a, b}), doctest::Contains("b.json"), FormatError);
}

TEST_CASE("models are listed with their sizes, and one is printed as a config that can be planned with") {
  const Called list = call({"models"});
  CHECK(list.exit_code == 0);
  CHECK(list.out.find("llama3-8b         llama          8.03 B    8030261248      32   4096      32/8      128256\n") !=
        std::string::npos);
  CHECK(list.out.find("  mistral-7b\n") != std::string::npos);
  const Called config = call({"models", "Llama3-8B"});
  CHECK(config.out.starts_with("{\n  \"model_type\": \"llama\",\n"));
  CHECK(call({"models", "llama3-405b"}).out == call({"models", "llama3.1-405b"}).out);
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "config.json") << config.out;
  CHECK(plimsoll::job::find_model(folder.path().string()).blocks == 32);
  CHECK(refusal_of({"models", "lama3-8b"}) ==
        "unknown model 'lama3-8b': did you mean llama3-8b? `plimsoll models` lists the known models");
}

TEST_CASE("the list of models is a document too, with aliases and configs") {
  const auto document = nlohmann::json::parse(call({"models", "--json"}).out);
  CHECK(document["command"] == "models");
  const auto& models = document["models"];
  CHECK(models.size() == plimsoll::architecture::presets().size());
  const auto mistral =
      std::find_if(models.begin(), models.end(), [](const auto& m) { return m["name"] == "mistral-7b-v0.3"; });
  REQUIRE(mistral != models.end());
  CHECK((*mistral)["aliases"] == nlohmann::json{"mistral-7b"});
  CHECK((*mistral)["parameters"] == 7248023552);
  CHECK((*mistral)["config"]["model_type"] == "mistral");
  CHECK(refusal_of({"models", "llama3-8b", "--json"}) == "--json lists all models, and does not go with a NAME");
}

TEST_CASE("the list of GPUs has every profile with its memory, as text and as a document") {
  const Called list = call({"gpus"});
  CHECK(list.out.find("H100-80GB       79.11 GiB                 9.0  132  NVIDIA H100 80GB HBM3\n") !=
        std::string::npos);
  const auto document = nlohmann::json::parse(call({"gpus", "--json"}).out);
  CHECK(document["command"] == "gpus");
  const auto& gpus = document["gpus"];
  const auto h100 = std::find_if(gpus.begin(), gpus.end(), [](const auto& gpu) { return gpu["name"] == "H100-80GB"; });
  REQUIRE(h100 != gpus.end());
  CHECK((*h100)["memory_bytes"] == 84943110144);
  CHECK_THROWS_WITH_AS(call({"gpus"}, {"/nowhere", "/nowhere"}, {}), doctest::Contains("no GPU profiles in /nowhere"),
                       InvalidArgument);
}

}  // namespace test_document_commands
