#include <doctest/doctest.h>

#include <algorithm>

#include "plimsoll/report/run_report.h"
#include "plimsoll/report/text/plan_explanation.h"
#include "plimsoll/report/text/step_rows.h"
#include "report/golden.h"
#include "report/sample_plan.h"
#include "report/sample_report.h"

namespace test_run_report {

using namespace plimsoll::report;
using namespace plimsoll::literals;

namespace {

std::size_t position(const std::string& text, const std::string& part) {
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  return at;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// From `first` to just before `end`; to the end of `text` where that is "".
std::string between(const std::string& text, const std::string& first, const std::string& end) {
  const std::size_t from = position(text, first);
  return text.substr(from, end.empty() ? std::string::npos : position(text, end) - from);
}

}  // namespace

TEST_CASE("the report of a run that fits") {
  CHECK(sample::fits().fits() == true);
  check_golden("fits.txt", to_text(sample::fits()));
  check_golden("fits.json", to_json(sample::fits()));
}

TEST_CASE("the report of a run that ran out of memory") {
  CHECK(sample::does_not_fit().fits() == false);
  check_golden("does_not_fit.txt", to_text(sample::does_not_fit()));
  check_golden("does_not_fit.json", to_json(sample::does_not_fit()));
}

TEST_CASE("the report of a run that failed otherwise, with all the warnings") {
  CHECK(sample::with_warnings().fits() == true);
  check_golden("with_warnings.txt", to_text(sample::with_warnings()));
  check_golden("with_warnings.json", to_json(sample::with_warnings()));
}

TEST_CASE("asked why, a report has the causes of the peak after its modules") {
  const std::string text = to_text(sample::fits(), {.depth = 3, .explain = true});
  check_golden("fits_explained.txt", text);
  CHECK(position(text, "The peak: ") < position(text, "Peaks by step"));
  CHECK(position(text, "Peaks by step") < position(text, "The peak by module"));
  CHECK(position(text, "The peak by module") < position(text, "The peak, cause by cause"));
  CHECK(position(text, "The peak, cause by cause") < position(text, "Largest live allocations"));
  CHECK_FALSE(has(to_text(sample::fits()), "cause by cause"));
}

TEST_CASE("where the categories are not known the reason stands in their place, if there is one") {
  const std::string reason = "categories were not asked for";
  RunReport report = sample::fits();
  sample::forget_attribution(report, reason);
  CHECK(has(to_text(report), "\nThe peak: step 2, backward\n  " + reason + "\n\nPeaks by step"));
  CHECK_FALSE(has(to_text(report), "The peak by module"));
  CHECK(has(to_text(report, {.explain = true}), "\nThe peak, cause by cause: not known\n"));
  const std::string json = to_json(report);
  CHECK(has(json, "\"module\": null,\n    \"stage\": null,\n    \"categories\": null,"));
  CHECK(has(json, "\"modules\": null,\n  \"causes\": null,\n  \"attribution\": \"" + reason + "\","));

  sample::forget_attribution(report);
  CHECK(has(to_text(report), "\nThe peak: step 2, backward\n\nPeaks by step"));
  CHECK(has(to_json(report), "\"attribution\": null"));
}

TEST_CASE("a long reason is broken at 120 columns") {
  RunReport report = sample::fits();
  std::string reason = "not known";
  for (int i = 0; i < 40; ++i) reason += " because";
  sample::forget_attribution(report, reason);
  std::string lines = between(to_text(report), "\n  not known because", "\n\nPeaks by step");
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 3);
  for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at + 1)) {
    CHECK(std::min(lines.find('\n', at + 1), lines.size()) - at - 1 <= 120);
  }
  for (std::size_t at = lines.find("\n  "); at != std::string::npos; at = lines.find("\n  ")) lines.replace(at, 3, " ");
  CHECK(lines == " " + reason);
}

TEST_CASE("where no module is named, a peak under fully_shard was outside of its modules; else nothing is said") {
  RunReport report = sample::fits();
  report.peak.module.clear();
  report.peak.stage.clear();
  CHECK(has(to_text(report), "\nThe peak: step 2, backward, in the model's own layers or the loss\n  category"));
  for (ModuleRow& module : report.modules) module.fsdp_unit = false;
  CHECK(has(to_text(report), "\nThe peak: step 2, backward\n  category"));
}

TEST_CASE("what was in no step was before the first one or after the last one") {
  RunReport report = sample::fits();
  report.peak.step.reset();
  report.peak.phase = "other";
  report.peak.module.clear();
  report.peak.stage.clear();
  for (ModuleRow& module : report.modules) module.fsdp_unit = false;
  report.before_steps->active_peak = report.peak.active;
  CHECK(has(to_text(report), "\nThe peak: before the first step\n"));
  report.after_steps = report.before_steps;
  report.before_steps->active_peak -= 1;
  CHECK(has(to_text(report), "\nThe peak: after the last step\n"));
  report.before_steps.reset();
  CHECK(has(to_text(report), "\nThe peak: after the last step\n"));

  report = sample::does_not_fit();
  report.oom->step.reset();
  report.oom->phase = "other";
  report.finished_steps = 0;
  CHECK(has(to_text(report), " asked for, before the first step, at "));
  report.finished_steps = 3;
  CHECK(has(to_text(report), " asked for, after step 2, at "));
}

TEST_CASE("modules are listed as deep as asked for, and roots by their classes where they are several") {
  CHECK(has(to_text(sample::fits()), "layers.0-3 * \u00D74"));
  CHECK_FALSE(has(to_text(sample::fits()), "mlp"));
  CHECK(has(to_text(sample::fits(), {.depth = 3}), "layers.0-3.mlp \u00D74"));
  CHECK_FALSE(has(to_text(sample::fits(), {.depth = 0}), "layers.0"));
  CHECK(has(to_text(sample::fits(), {.depth = 0}), "(the model) *"));
  CHECK(has(to_text(sample::with_warnings()), "\n  Generator.up "));
  CHECK_FALSE(has(to_text(sample::with_warnings()), "(the model)"));
}

TEST_CASE("plans and runs write the peak, its modules and its causes alike") {
  PlanReport plan = sample::plan_fits();
  RunReport run = sample::fits();
  plan.peak = run.peak;
  plan.modules = run.modules;
  plan.causes = run.causes;
  for (const auto& [first, end] :
       {std::pair("\nThe peak: ", "\nPeaks by step"), std::pair("\nThe peak by module", "")}) {
    const std::string part = between(to_text(plan), first, end);
    CHECK(part.size() > 100);
    CHECK(has(to_text(run), part));
  }
  CHECK(has(to_text(run, {.explain = true}), between(explanation_text(plan, {}), "\nThe peak, cause", "")));
  CHECK(has(to_json(run), between(to_json(plan), "\n  \"peak\": {", "\n  \"oom\"")));
  CHECK(has(to_json(run), between(to_json(plan), "\n  \"modules\": [", "\n  \"host_bytes\"")));
}

TEST_CASE("an out-of-memory error that the script survived does not mean that it does not fit") {
  RunReport report = sample::fits();
  report.ooms_handled = 1;
  CHECK(report.fits() == true);
  CHECK(
      to_text(report).starts_with("fits: 26.00 GiB of 79.11 GiB on the device book, 53.11 GiB to spare (H100-80GB)\n"));
  CHECK(to_text(report).find("1 out-of-memory error caught by the script") != std::string::npos);
}

TEST_CASE("a script that ends well though memory ran out, and it did no more, does not fit") {
  RunReport report = sample::does_not_fit();
  report.exit_code = 0;
  report.error.reset();
  CHECK(report.fits() == false);
  CHECK(to_text(report).starts_with("does not fit: "));
}

TEST_CASE("a run in which the allocator had to retry fits barely, and says so") {
  RunReport report = sample::fits();
  report.alloc_retries = 2;
  CHECK(to_text(report).rfind("fits, barely: ", 0) == 0);
  CHECK(to_text(report).find("had to empty its cache 2 times") != std::string::npos);
}

TEST_CASE("a part of the observer that failed is named") {
  RunReport report = sample::fits();
  report.defects = {"Contents.finish: ValueError('x')"};
  CHECK(to_text(report).find("part of this report is missing: Contents.finish") != std::string::npos);
}

TEST_CASE("a limit of the script's own, a piece too large and a library's refusal are told apart") {
  RunReport report = sample::does_not_fit();
  report.oom->device_free = 3_GiB;
  CHECK(
      to_text(report).starts_with("does not fit: 2.00 GiB asked for, 3.00 GiB free of 79.11 GiB: too little for the "
                                  "pieces in which memory is taken (H100-80GB)"));
  report.oom->device_total = 40_GiB;
  CHECK(
      to_text(report).starts_with("does not fit: 2.00 GiB asked for, 3.00 GiB free of the 40.00 GiB that the script "
                                  "allows itself (H100-80GB)"));
  report.oom->requested = 0;
  report.oom->message = "NCCL: out of memory\nand more";
  CHECK(to_text(report).starts_with("does not fit: NCCL: out of memory (H100-80GB)"));
}

TEST_CASE("a process that died between two steps leaves no verdict") {
  RunReport report = sample::fits();
  report.complete = false;
  CHECK(report.fits() == true);
  report.exit_code = 134;
  report.signal = 6;
  CHECK_FALSE(report.fits().has_value());
  CHECK(to_text(report).starts_with("no verdict: the script died between two steps; signal 6 (Aborted) ended it\n"));
}

TEST_CASE("without a record there is no verdict; without a GPU in it there is") {
  RunReport report;
  CHECK(to_text(report) == "no verdict: the script left no record of a GPU\n");
  report.recorded = true;
  CHECK(to_text(report) == "fits: the script used no GPU\n");
  report.exit_code = 1;
  CHECK_FALSE(report.fits().has_value());
  CHECK(to_text(report) == "no verdict: the script left no record of a GPU; it ended with exit code 1\n");
  report.exit_code = 137;
  report.signal = 9;
  CHECK(to_text(report) == "no verdict: the script left no record of a GPU; signal 9 (Killed) ended it\n");
  CHECK(to_json(report).find("\"fits\": null") != std::string::npos);
  CHECK(to_json(report).find("\"signal\": 9") != std::string::npos);
}

TEST_CASE("colour is used only when told") {
  CHECK(to_text(sample::fits()).find('\x1b') == std::string::npos);
  CHECK(to_text(sample::fits(), {.colour = Colour::kAlways}).starts_with("\x1b[1;32mfits:\x1b[0m"));
}

TEST_CASE("no more lines of code are listed than asked for") {
  const std::string text = to_text(sample::fits(), {.top = 1});
  CHECK(text.find("model.py:42") != std::string::npos);
  CHECK(text.find("train.py:7") == std::string::npos);
}

TEST_CASE("a long line of code is cut in the text, between characters, and whole in the JSON") {
  RunReport report = sample::fits();
  const std::string start(76, 'x');
  report.top[0].where.code = start + "\xC3\xA9 and so on";
  CHECK(to_text(report).find(start + "...\n") != std::string::npos);
  CHECK(to_json(report).find(report.top[0].where.code) != std::string::npos);
}

TEST_CASE("source text that is not UTF-8 does not cost the document") {
  RunReport report = sample::fits();
  report.top[0].where.code = "x = '\xff'";
  CHECK(to_json(report).find("x = '\xEF\xBF\xBD'") != std::string::npos);
}

TEST_CASE("consecutive steps with the same peaks share a row") {
  RunReport report = sample::fits();
  std::vector<std::string> labels;
  for (const StepRow& row : step_rows(report)) labels.push_back(row.label);
  CHECK(labels == std::vector<std::string>{"before", "0", "1-3"});
}

TEST_CASE("of very many different steps the middle ones become one row with their highest peaks") {
  RunReport report;
  for (int i = 0; i < 100; ++i) report.steps.push_back(sample::step(i, (i == 50 ? 90_GiB : 1_GiB) + 512ULL * i));
  const std::vector<StepRow> rows = step_rows(report, 8);
  REQUIRE(rows.size() == 8);
  CHECK(rows[4].label == "4");
  CHECK(rows[5].label == "5-97 (highest)");
  CHECK(rows[5].active_peak == 90_GiB + 512 * 50);
  CHECK(rows[5].active_by_phase.at("backward") == 90_GiB + 512 * 50);
  CHECK(rows[7].label == "99");
}

TEST_CASE("phases stand in the order of a step, unknown ones behind") {
  std::vector<StepRow> rows(1);
  rows[0].active_by_phase = {{"zeta", 1}, {"backward", 1}, {"other", 1}, {"forward", 1}};
  CHECK(phases_of(rows) == std::vector<std::string>{"forward", "backward", "other", "zeta"});
}

}  // namespace test_run_report
