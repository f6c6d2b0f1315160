#include <doctest/doctest.h>

#include <algorithm>

#include "plimsoll/report/document.h"
#include "plimsoll/report/text/sections.h"
#include "report/golden.h"
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

std::string text_of(const Report& report) { return to_text(sample::judged(report)); }

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
}

TEST_CASE("the report of a run that ran out of memory") {
  CHECK(sample::does_not_fit().fits() == false);
  check_golden("does_not_fit.txt", to_text(sample::does_not_fit()));
}

TEST_CASE("the report of a run that failed otherwise, with all the warnings") {
  CHECK(sample::with_warnings().fits() == true);
  check_golden("with_warnings.txt", to_text(sample::with_warnings()));
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
  Report report = sample::fits();
  sample::forget_attribution(report, reason);
  CHECK(has(text_of(report), "\nThe peak: step 2, backward\n  " + reason + "\n\nPeaks by step"));
  CHECK_FALSE(has(text_of(report), "The peak by module"));
  CHECK(has(to_text(report, {.explain = true}), "\nThe peak, cause by cause: not known\n"));
  const std::string json = to_json(report);
  CHECK(has(json, "\"module\": null,\n    \"stage\": null,\n    \"categories\": null,"));
  CHECK(has(json, "\"modules\": null,\n  \"causes\": null,\n  \"attribution\": \"" + reason + "\","));

  sample::forget_attribution(report);
  CHECK(has(text_of(report), "\nThe peak: step 2, backward\n\nPeaks by step"));
  CHECK(has(to_json(report), "\"attribution\": null"));
}

TEST_CASE("a long reason is broken at 120 columns") {
  Report report = sample::fits();
  std::string reason = "not known";
  for (int i = 0; i < 40; ++i) reason += " because";
  sample::forget_attribution(report, reason);
  std::string lines = between(text_of(report), "\n  not known because", "\n\nPeaks by step");
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 3);
  for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at + 1)) {
    CHECK(std::min(lines.find('\n', at + 1), lines.size()) - at - 1 <= 120);
  }
  for (std::size_t at = lines.find("\n  "); at != std::string::npos; at = lines.find("\n  ")) lines.replace(at, 3, " ");
  CHECK(lines == " " + reason);
}

TEST_CASE("where no module is named, a peak under fully_shard was outside of its modules; else nothing is said") {
  Report report = sample::fits();
  report.peak.module.clear();
  report.peak.stage.clear();
  CHECK(has(text_of(report), "\nThe peak: step 2, backward, in the model's own layers or the loss\n  category"));
  for (ModuleRow& module : report.modules) module.fsdp_unit = false;
  CHECK(has(text_of(report), "\nThe peak: step 2, backward\n  category"));
}

TEST_CASE("what was in no step was before the first one or after the last one") {
  Report report = sample::fits();
  report.peak.step.reset();
  report.peak.phase = "other";
  report.peak.module.clear();
  report.peak.stage.clear();
  for (ModuleRow& module : report.modules) module.fsdp_unit = false;
  report.before_steps->active_peak = report.peak.active;
  CHECK(has(text_of(report), "\nThe peak: before the first step\n"));
  report.after_steps = report.before_steps;
  report.before_steps->active_peak -= 1;
  CHECK(has(text_of(report), "\nThe peak: after the last step\n"));
  report.before_steps.reset();
  CHECK(has(text_of(report), "\nThe peak: after the last step\n"));

  report = sample::does_not_fit();
  report.oom->step.reset();
  report.oom->phase = "other";
  report.as_script().finished_steps = 0;
  CHECK(has(text_of(report), " requested, before the first step, at "));
  report.as_script().finished_steps = 3;
  CHECK(has(text_of(report), " requested, after step 2, at "));
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
  Report plan = sample::plan_fits();
  Report run = sample::fits();
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
  CHECK(has(to_json(run), between(to_json(plan), "\n  \"modules\": [", "\n  \"attribution\"")));
}

TEST_CASE("an out-of-memory error that the script survived does not mean that it does not fit") {
  Report report = sample::fits();
  report.as_script().ooms_handled = 1;
  CHECK(sample::judged(report).fits() == true);
  CHECK(text_of(report).starts_with("Fits: 26.00 of 79.11 GiB used on an H100-80GB, 53.11 GiB left.\n"));
  CHECK(text_of(report).find("The script caught 1 out-of-memory error") != std::string::npos);
}

TEST_CASE("a script that ends well though memory ran out, and it did no more, does not fit") {
  Report report = sample::does_not_fit();
  report.as_script().exit_code = 0;
  report.as_script().error.reset();
  CHECK(sample::judged(report).fits() == false);
  CHECK(text_of(report).starts_with("Does not fit: "));
}

TEST_CASE("a run in which the allocator had to retry fits barely, and says so") {
  Report report = sample::fits();
  report.alloc_retries = 2;
  CHECK(text_of(report).rfind("Fits, but only just: ", 0) == 0);
  CHECK(text_of(report).find("had to flush its memory cache 2 times") != std::string::npos);
}

TEST_CASE("a part of the observer that failed is named") {
  Report report = sample::fits();
  report.as_script().defects = {"Contents.finish: ValueError('x')"};
  CHECK(text_of(report).find("part of this report is missing: Contents.finish") != std::string::npos);
}

TEST_CASE("a limit of the script's own, a piece too large and a library's refusal are told apart") {
  Report report = sample::does_not_fit();
  report.oom->device_free = 3_GiB;
  CHECK(
      text_of(report).starts_with("Does not fit: an allocation of 2.00 GiB failed, with 3.00 GiB of 79.11 GiB free on "
                                  "the H100-80GB; the free memory is in pieces that are too small.\n"));
  report.oom->device_total = 40_GiB;
  CHECK(
      text_of(report).starts_with("Does not fit: an allocation of 2.00 GiB failed, with 3.00 GiB free of the 40.00 GiB "
                                  "that the script allows itself on the H100-80GB;"));
  report.oom->requested = 0;
  report.oom->message = "NCCL: out of memory\nand more";
  CHECK(text_of(report).starts_with("Does not fit: NCCL: out of memory (H100-80GB).\n"));
}

TEST_CASE("a process that died between two steps leaves no verdict") {
  Report report = sample::fits();
  report.as_script().complete = false;
  CHECK(sample::judged(report).fits() == true);
  report.as_script().exit_code = 134;
  report.as_script().signal = 6;
  CHECK_FALSE(sample::judged(report).fits().has_value());
  CHECK(text_of(report).starts_with(
      "No verdict: the script was stopped (SIGABRT) between two steps, before the report was written.\n"));
}

TEST_CASE("a script that used no GPU has no verdict, however it ended") {
  Report report;
  ScriptRun& run = report.subject.emplace<ScriptRun>();
  CHECK(text_of(report) == "No verdict: the script used no GPU.\n");
  run.exit_code = 1;
  CHECK(text_of(report) == "No verdict: the script ended with exit code 1; it had not used the GPU.\n");
  run.exit_code = 143;
  run.signal = 15;
  CHECK(text_of(report) == "No verdict: the script was stopped (SIGTERM) before the report was written.\n");
  const std::string json = to_json(sample::judged(report));
  CHECK(has(json, "\"fits\": null"));
  CHECK(has(json, "\"outcome\": \"stopped\""));
  CHECK(has(json, "\"signal\": 15"));
}

TEST_CASE("memory that the user holds back counts against the verdict") {
  Report report = sample::fits();
  report.verdict = verdict_of(report, 53_GiB);
  CHECK(report.fits() == true);
  report.verdict = verdict_of(report, 54_GiB);
  CHECK(report.fits() == false);
  CHECK(report.verdict.outcome == Outcome::kTooLittleLeft);
  CHECK(report.verdict.sentence ==
        "Does not fit: 26.00 of 79.11 GiB used on an H100-80GB, 53.11 GiB left, less than the reserve of 54.00 GiB.");
  CHECK(report_from_json(to_json(report), "a.json").verdict.outcome == Outcome::kTooLittleLeft);
}

TEST_CASE("a job fits only just if less is left than the estimates' share") {
  Report report = sample::fits();
  CHECK(report.verdict.estimated == 1032_MiB);
  report.gpu.memory = report.peak.device + 1032_MiB;
  CHECK_FALSE(verdict_of(report).only_just);
  report.gpu.memory -= 1;
  CHECK(verdict_of(report).only_just);
  CHECK(verdict_of(report).sentence.starts_with("Fits, but only just: "));
}

TEST_CASE("colour is used only when told") {
  CHECK(to_text(sample::fits()).find('\x1b') == std::string::npos);
  CHECK(to_text(sample::fits(), {.colour = Colour::kAlways}).starts_with("\x1b[1;32mFits:\x1b[0m"));
}

TEST_CASE("no more lines of code are listed than asked for") {
  const std::string text = to_text(sample::fits(), {.top = 1});
  CHECK(text.find("model.py:42") != std::string::npos);
  CHECK(text.find("train.py:7") == std::string::npos);
}

TEST_CASE("a long line of code is cut in the text, between characters, and whole in the JSON") {
  Report report = sample::fits();
  const std::string start(76, 'x');
  report.as_script().top[0].where.code = start + "\xC3\xA9 and so on";
  CHECK(text_of(report).find(start + "...\n") != std::string::npos);
  CHECK(to_json(report).find(report.as_script().top[0].where.code) != std::string::npos);
}

TEST_CASE("consecutive steps with the same peaks share a row") {
  Report report = sample::fits();
  std::vector<std::string> labels;
  for (const StepRow& row : step_rows(report)) labels.push_back(row.label);
  CHECK(labels == std::vector<std::string>{"before", "0", "1-3"});
}

TEST_CASE("of very many different steps the middle ones become one row with their highest peaks") {
  Report report;
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
