#include <doctest/doctest.h>

#include <algorithm>
#include <string_view>

#include "plimsoll/base/errors.h"
#include "plimsoll/report/document.h"
#include "plimsoll/report/text/sections.h"
#include "report/golden.h"
#include "report/sample_report.h"

namespace test_document {

using namespace plimsoll::report;
using plimsoll::FormatError;

namespace {

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

std::string one_line() { return to_json(sample::plan_does_not_fit(), JsonForm::kOneLine); }

std::string refusal(const std::string& text) {
  try {
    report_from_json(text, "a.json");
  } catch (const FormatError& error) {
    return error.what();
  }
  return "";
}

/// What is said where `what` in the document is `by`.
std::string refusal(const std::string& what, const std::string& by) { return refusal(replaced(one_line(), what, by)); }

}  // namespace

TEST_CASE("a document that is read and written again has the same text") {
  const auto check = [](const std::string& name, const Report& report) {
    const std::string text = to_json(report);
    check_golden(name, text);
    CHECK(to_json(report_from_json(text, name)) == text);
    const std::string line = to_json(report, JsonForm::kOneLine);
    CHECK(std::count(line.begin(), line.end(), '\n') == 1);
    CHECK(line.ends_with("}\n"));
    CHECK(to_json(report_from_json(line, name)) == text);
    CHECK(to_text(report_from_json(line, name)) == to_text(report));
  };
  check("plan_fits.json", sample::plan_fits());
  check("plan_does_not_fit.json", sample::plan_does_not_fit());
  check("plan_hsdp_offload.json", sample::plan_hsdp_offload());
  check("plan_empty.json", sample::judged({}));
  check("fits.json", sample::fits());
  check("does_not_fit.json", sample::does_not_fit());
  check("with_warnings.json", sample::with_warnings());
}

TEST_CASE("a field that a later plimsoll adds is passed over") {
  const std::string text = replaced(one_line(), "\"ops\":", "\"new\":{\"a\":[1]},\"ops\":");
  CHECK(to_json(report_from_json(text, "a.json"), JsonForm::kOneLine) == one_line());
}

TEST_CASE("what is not JSON, or no plan, is refused by name") {
  CHECK(refusal("") == "a.json: not JSON: it goes wrong at byte 1");
  CHECK(refusal("{\"version\":NaN}") == "a.json: not JSON: it goes wrong at byte 12");
  CHECK(refusal("{\"version\":1e999}") == "a.json: not JSON that can be read: a number is beyond what a double holds");
  CHECK(refusal("\"\xff\"") == "a.json: not JSON: it goes wrong at byte 2");
  CHECK(refusal("[1]") == "a.json: the document must be an object, found a list");
  CHECK(refusal("{}") == "a.json: field 'version' is missing");
  CHECK(refusal("\"version\":2", "\"version\":3") == "a.json: field 'version' must be 1 or 2, found 3");
  CHECK(refusal("\"command\":\"plan\"", "\"command\":\"fit\"") ==
        "a.json: field 'command' must be \"plan\" or \"run\", found \"fit\"");
  CHECK(refusal("\"fits\":false", "\"fits\":true") ==
        "a.json: field 'fits' is true, but the other values of the document say otherwise");
}

TEST_CASE("a field of the wrong kind is named, with what was expected and found") {
  const std::string whole = "must be a whole number from 0 to 9223372036854775807, found ";
  CHECK(refusal("\"segments\":333", "\"segments\":-1") == "a.json: field 'peak.segments' " + whole + "-1");
  CHECK(refusal("\"segments\":333", "\"segments\":3.5") == "a.json: field 'peak.segments' " + whole + "3.5");
  CHECK(refusal("\"segments\":333", "\"segments\":18446744073709551615") ==
        "a.json: field 'peak.segments' " + whole + "18446744073709551615");
  CHECK(refusal("\"segments\":333", "\"segments\":1e300") == "a.json: field 'peak.segments' " + whole + "1e+300");
  CHECK(refusal("\"nccl\":503316480", "\"nccl\":null") == "a.json: field 'peak.device_parts.nccl' " + whole + "null");
  CHECK(refusal("\"gpus\":8", "\"gpus\":[8]") ==
        "a.json: field 'job.gpus' must be text, a number, true, false or null, found a list");
  CHECK(refusal("\"gpus\":8", "\"gpus\":9223372036854775808") ==
        "a.json: field 'job.gpus' must be a whole number of at most 63 bits, found 9223372036854775808");
  CHECK(refusal("\"fsdp_unit\":true", "\"fsdp_unit\":\"yes\"") ==
        "a.json: field 'modules[0].fsdp_unit' must be true or false, found \"yes\"");
  CHECK(refusal("\"name\":\"tok_embeddings\"", "\"name\":{}") ==
        "a.json: field 'modules[1].name' must be text, found an object");
  CHECK(refusal("\"notes\":[]", "\"notes\":[\"a\",1]") == "a.json: field 'notes[1]' must be text, found 1");
  CHECK(refusal("\"notes\":[]", "\"notes\":0") == "a.json: field 'notes' must be a list, found 0");
  CHECK(refusal("\"seconds\":1.12", "\"seconds\":\"1\"") == "a.json: field 'seconds' must be a number, found \"1\"");
  CHECK(refusal("\"phases\":{\"other\":{", "\"phases\":{\"other\":1,\"x\":{") ==
        "a.json: field 'before_steps.phases.other' must be an object, found 1");
}

TEST_CASE("what was found is cut, and holds nothing that a terminal obeys") {
  const std::string said = refusal("\"segments\":333", "\"segments\":\"\\u001b[2J" + std::string(500, 'x') + "\"");
  CHECK(said.find('\x1b') == std::string::npos);
  CHECK(said.ends_with("xxx..."));
  CHECK(said.size() < 200);
}

TEST_CASE("hostile documents are refused before they are built") {
  CHECK(refusal(std::string(1 << 20, '[')) == "a.json: nested deeper than 32 levels: no report is");
  CHECK(refusal(std::string(kMostDocumentBytes + 1, ' ')) == "a.json: larger than 64 MiB: no report is");
  std::string wide = "{\"a\":1";
  for (int i = 0; i < 300; ++i) wide += ",\"" + std::to_string(i) + "\":1";
  CHECK(refusal(wide + "}") == "a.json: an object has more than 256 fields: no report's has");
  std::string many = "[1";
  for (int i = 0; i < (8 << 20); ++i) many += ",1";
  CHECK(refusal(many + "]") == "a.json: more than 8388608 values: no report has as many");
  CHECK(refusal("\"\\") == "a.json: not JSON: it goes wrong at byte 3");
}

TEST_CASE("a document that ends early anywhere, or has a byte changed, is read or refused, and nothing else") {
  const std::string text = one_line();
  const std::size_t end = text.find("\"modules\"") + 600;
  for (std::size_t i = 0; i < end; i += 7) CHECK(refusal(text.substr(0, i)) != "");
  const std::string_view bytes("{\"-9n\0\xff", 7);
  for (std::size_t i = 0; i < end; i += 3) {
    std::string changed = text;
    changed[i] = bytes[i % bytes.size()];
    refusal(changed);
  }
}

TEST_CASE("documents of version 1 are read") {
  const auto read = [](const std::string& name) {
    const std::filesystem::path file = std::filesystem::path(PLIMSOLL_SOURCE_DIR) / "tests/report/golden/v1" / name;
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return report_from_json(text.str(), name);
  };
  for (const auto& [name, expected] :
       {std::pair("plan_fits.json", sample::plan_fits()),
        std::pair("plan_does_not_fit.json", sample::plan_does_not_fit()), std::pair("fits.json", sample::fits()),
        std::pair("does_not_fit.json", sample::does_not_fit())}) {
    const Report report = read(name);
    CAPTURE(name);
    CHECK(report.subject.index() == expected.subject.index());
    CHECK(report.verdict.sentence == expected.verdict.sentence);
    CHECK(report.gpu.memory == expected.gpu.memory);
    CHECK(report.peak.device == expected.peak.device);
    CHECK(report.peak.categories == expected.peak.categories);
    CHECK(report.modules.size() == expected.modules.size());
    CHECK(report.steps.size() == expected.steps.size());
  }
  CHECK(refusal("{\"version\":1}") == "a.json: field 'fits' is missing");
}

TEST_CASE("the schema in docs is current") {
  check_golden_file(std::filesystem::path(PLIMSOLL_SOURCE_DIR) / "docs/schema/report.schema.json", document_schema());
}

TEST_CASE("source text that is not UTF-8 does not cost the document") {
  Report report = sample::fits();
  report.as_script().top[0].where.code = "x = '\xff'";
  CHECK(to_json(report).find("x = '\xEF\xBF\xBD'") != std::string::npos);
}

}  // namespace test_document
