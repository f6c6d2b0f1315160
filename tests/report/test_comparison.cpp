#include <doctest/doctest.h>

#include "plimsoll/base/errors.h"
#include "plimsoll/report/document.h"
#include "report/golden.h"
#include "report/sample_report.h"

namespace test_comparison {

using namespace plimsoll::report;
using namespace plimsoll::literals;

namespace {

NamedReport read(const std::string& text, const std::string& name) { return {name, report_from_json(text, name)}; }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Checkpoints instead of activations: each block keeps a quarter, and the embedding is gone.
Report with_checkpoints() {
  Report report = sample::plan_fits();
  for (auto& [name, value] : report.as_planned().job) {
    if (name == "checkpoint") value = "full";
  }
  report.as_planned().job.emplace_back("norm", "fused");
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
  return sample::judged(report);
}

}  // namespace

TEST_CASE("two plans side by side") {
  const Comparison comparison = compare({"runs/a.json", sample::plan_fits()}, {"runs/b.json", with_checkpoints()});
  check_golden("compare.txt", to_text(comparison));
  check_golden("compare.json", to_json(comparison));
  CHECK(to_text(comparison, {.quiet = true}) ==
        "B takes 36.00 GiB less than A on the device book: 24.00 GiB instead of 60.00 GiB; A fits, B fits\n");
}

TEST_CASE("a plan and a run whose categories are known are compared in those too, and in modules") {
  const Comparison comparison =
      compare(read(to_json(sample::plan_fits()), "plan.json"), read(to_json(sample::fits()), "run.json"));
  check_golden("compare_run.txt", to_text(comparison));
  check_golden("compare_run.json", to_json(comparison));
  CHECK(comparison.categories);
  CHECK_FALSE(comparison.settings);
}

TEST_CASE("two runs are compared module by module") {
  Report smaller = sample::fits();
  smaller.modules[1].total -= 1_GiB;
  const Comparison comparison = compare(read(to_json(sample::fits()), "a.json"), read(to_json(smaller), "b.json"));
  REQUIRE(comparison.modules->size() == 1);
  CHECK(comparison.modules->at(0).name == "layers.0");
  CHECK(comparison.modules->at(0).difference() == -static_cast<std::int64_t>(1_GiB));
}

TEST_CASE("a plan and a run whose categories are not known share verdict, books and phases") {
  const Comparison comparison =
      compare(read(to_json(sample::plan_fits()), "plan.json"), read(to_json(sample::does_not_fit()), "run.json"));
  check_golden("compare_unattributed.txt", to_text(comparison));
  check_golden("compare_unattributed.json", to_json(comparison));
}

TEST_CASE("a run of version 1 from before categories is read") {
  const NamedReport old = read(
      R"({"version":1,"fits":true,"gpu":{"name":"H100-80GB","memory_bytes":84943110144},"processes":1,"complete":true,
          "peak":{"active_bytes":23622320128,"step":2,"phase":"backward"},"steps":[{"step":0,"active_peak_bytes":7}]})",
      "old.json");
  CHECK_FALSE(old.report.is_attributed());
  CHECK(old.report.peak.active == 22_GiB);
  CHECK(has(to_json(compare(old, old), JsonForm::kOneLine), "\"categories\":null"));
  CHECK(has(to_text(compare(old, old)), "     its categories and modules are not known\n"));
}

TEST_CASE("a report is equal to itself") {
  const NamedReport plan{"a.json", sample::plan_fits()};
  const std::string text = to_text(compare(plan, plan));
  CHECK(text.starts_with("B takes as much as A on the device book: 60.00 GiB; A fits, B fits\n"));
  CHECK(has(text, "No setting differs"));
  CHECK_FALSE(has(text, "Modules that changed"));
  CHECK_FALSE(has(text, "Categories at the peak"));
}

TEST_CASE("a run without a verdict has none") {
  Report run = sample::fits();
  run.as_script().complete = false;
  run.as_script().exit_code = 1;
  run = sample::judged(run);
  const NamedReport side = read(to_json(run), "run.json");
  CHECK_FALSE(side.report.fits().has_value());
  CHECK(has(to_text(compare(side, side)), "A has no verdict, B has no verdict"));
}

TEST_CASE("what a document says reaches a terminal without orders to it") {
  Report evil = sample::plan_fits();
  evil.as_planned().model.name = evil.gpu.name = "\x1b[2J";
  evil.as_planned().job = {{"\x1b[2J", "\x1b[2J"}};
  evil.peak.categories = {{"\x1b[2J", 1_GiB}};
  evil.modules = {sample::module("\x1b[2J", "", 1, 1, {{"\x1b[2J", 1_GiB}})};
  const NamedReport plan = read(to_json(sample::plan_fits()), "a.json");
  const std::string text = to_text(compare(plan, read(to_json(evil), "b.json")));
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(has(text, "?[2J"));
  Report run = sample::fits();
  sample::forget_attribution(run, "\x1b[2J");
  CHECK(has(to_text(compare(plan, read(to_json(run), "b.json"))), "not known: ?[2J\n"));
}

TEST_CASE("a plan and a script are compared in either order, and so are two runs") {
  const NamedReport run{"run.json", sample::fits()};
  const NamedReport plan{"plan.json", sample::plan_fits()};
  CHECK(compare(run, plan).categories);
  CHECK_FALSE(compare(run, plan).settings);
  CHECK(compare(run, run).categories);
}

TEST_CASE("the largest amounts that are read differ by a number with a sign") {
  BytesChange change{"x", plimsoll::Bytes{9223372036854775807}, std::nullopt};
  CHECK(change.difference() == -9223372036854775807);
}

}  // namespace test_comparison
