#include <doctest/doctest.h>

#include "plimsoll/base/errors.h"
#include "plimsoll/report/comparison.h"
#include "report/golden.h"
#include "report/sample_plan.h"
#include "report/sample_report.h"

namespace test_comparison {

using namespace plimsoll::report;
using namespace plimsoll::literals;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Checkpoints instead of activations: each block keeps a quarter, and the embedding is gone.
PlanReport with_checkpoints() {
  PlanReport report = sample::plan_fits();
  for (auto& [name, value] : report.job) {
    if (name == "checkpoint") value = "full";
  }
  report.job.emplace_back("norm", "fused");
  report.peak.active = report.peak.allocated = 20_GiB;
  report.peak.reserved = report.peak.device_parts.segments = 23_GiB;
  report.peak.device = 24_GiB;
  report.peak.categories = {{"OptState", 8_GiB}, {"Sharded Param", 4_GiB}, {"Activation", 6_GiB}, {"Workspace", 2_GiB}};
  report.steps = {sample::plan_step(0, 18_GiB), sample::plan_step(1, 20_GiB)};
  report.before_steps.reset();
  report.modules.erase(report.modules.begin() + 1);
  for (ModuleRow& module : report.modules) {
    if (module.name.starts_with("layers.")) module.total /= 4;
  }
  return report;
}

}  // namespace

TEST_CASE("two plans side by side") {
  const Comparison comparison =
      compare(compared(sample::plan_fits(), "runs/a.json"), compared(with_checkpoints(), "runs/b.json"));
  check_golden("compare.txt", to_text(comparison));
  check_golden("compare.json", to_json(comparison));
  CHECK(to_text(comparison, {.quiet = true}) ==
        "B takes 36.00 GiB less than A on the device book: 24.00 GiB instead of 60.00 GiB; A fits, B fits\n");
}

TEST_CASE("a plan and a run whose categories are known are compared in those too, and in modules") {
  const Comparison comparison = compare(compared_from_json(to_json(sample::plan_fits()), "plan.json"),
                                        compared_from_json(to_json(sample::fits()), "run.json"));
  check_golden("compare_run.txt", to_text(comparison));
  check_golden("compare_run.json", to_json(comparison));
  CHECK(comparison.attributed);
  CHECK_FALSE(comparison.plans);
}

TEST_CASE("two runs are compared module by module") {
  RunReport smaller = sample::fits();
  smaller.modules[1].total -= 1_GiB;
  const Comparison comparison =
      compare(compared_from_json(to_json(sample::fits()), "a.json"), compared_from_json(to_json(smaller), "b.json"));
  REQUIRE(comparison.modules.size() == 1);
  CHECK(comparison.modules[0].name == "layers.0");
  CHECK(comparison.modules[0].difference() == -static_cast<std::int64_t>(1_GiB));
}

TEST_CASE("a plan and a run whose categories are not known share verdict, books and phases") {
  const Comparison comparison = compare(compared_from_json(to_json(sample::plan_fits()), "plan.json"),
                                        compared_from_json(to_json(sample::does_not_fit()), "run.json"));
  check_golden("compare_unattributed.txt", to_text(comparison));
  check_golden("compare_unattributed.json", to_json(comparison));
}

TEST_CASE("a document of run from before it knew categories is read") {
  RunReport run = sample::fits();
  sample::forget_attribution(run);
  std::string text = to_json(run);
  for (const char* field : {"    \"module\": null,\n", "    \"stage\": null,\n", "    \"categories\": null,\n",
                            "  \"modules\": null,\n", "  \"causes\": null,\n", "  \"attribution\": null,\n"}) {
    REQUIRE(has(text, field));
    text.erase(text.find(field), std::string(field).size());
  }
  const ComparedReport read = compared_from_json(text, "old.json");
  CHECK_FALSE(read.is_attributed);
  CHECK(read.peak.active == 22_GiB);
  CHECK(has(to_json(compare(read, read), JsonForm::kOneLine), "\"categories\":null"));
  CHECK(has(to_text(compare(read, read)), "     its categories and modules are not known\n"));
}

TEST_CASE("a report is equal to itself") {
  const ComparedReport plan = compared(sample::plan_fits(), "a.json");
  const std::string text = to_text(compare(plan, plan));
  CHECK(text.starts_with("B takes as much as A on the device book: 60.00 GiB; A fits, B fits\n"));
  CHECK(has(text, "No setting differs"));
  CHECK_FALSE(has(text, "Modules that changed"));
  CHECK_FALSE(has(text, "Categories at the peak"));
}

TEST_CASE("a run without a verdict has none") {
  RunReport run = sample::fits();
  run.complete = false;
  run.exit_code = 1;
  const ComparedReport read = compared_from_json(to_json(run), "run.json");
  CHECK(read.command == "run");
  CHECK_FALSE(read.fits.has_value());
  CHECK(has(to_text(compare(read, read)), "A has no verdict, B has no verdict"));
}

TEST_CASE("what a document says reaches a terminal without orders to it") {
  PlanReport evil = sample::plan_fits();
  evil.model.name = evil.gpu.name = "\x1b[2J";
  evil.job = {{"\x1b[2J", "\x1b[2J"}};
  evil.peak.categories = {{"\x1b[2J", 1_GiB}};
  evil.modules = {sample::module("\x1b[2J", "", 1, 1, {{"\x1b[2J", 1_GiB}})};
  const ComparedReport plan = compared_from_json(to_json(sample::plan_fits()), "a.json");
  const std::string text = to_text(compare(plan, compared_from_json(to_json(evil), "b.json")));
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(has(text, "?[2J"));
  RunReport run = sample::fits();
  sample::forget_attribution(run, "\x1b[2J");
  CHECK(has(to_text(compare(plan, compared_from_json(to_json(run), "b.json"))), "not known: ?[2J\n"));
}

TEST_CASE("other documents are refused") {
  CHECK_THROWS_WITH_AS(compared_from_json(R"({"version":1,"command":"sweep"})", "s.json"),
                       "s.json: field 'command' must be \"plan\", or absent as in documents of run, found \"sweep\"",
                       plimsoll::FormatError);
  CHECK_THROWS_WITH_AS(compared_from_json(R"({"version":1})", "s.json"), "s.json: field 'fits' is missing",
                       plimsoll::FormatError);
  std::string text = to_json(sample::fits());
  text.replace(text.find("\"fsdp_unit\": true"), 17, "\"fsdp_unit\": null");
  CHECK_THROWS_WITH_AS(compared_from_json(text, "s.json"),
                       "s.json: field 'modules[0].fsdp_unit' must be true or false, found null", plimsoll::FormatError);
  CHECK_THROWS_WITH_AS(compared_from_json("", "s.json"), "s.json: not JSON: it goes wrong at byte 1",
                       plimsoll::FormatError);
}

TEST_CASE("the largest amounts that are read differ by a number with a sign") {
  BytesChange change{"x", plimsoll::Bytes{9223372036854775807}, std::nullopt};
  CHECK(change.difference() == -9223372036854775807);
}

}  // namespace test_comparison
