#include <doctest/doctest.h>

#include "plimsoll/report/run_report.h"
#include "plimsoll/report/step_rows.h"
#include "report/golden.h"
#include "report/sample_report.h"

using namespace plimsoll::report;
using namespace plimsoll::literals;

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
