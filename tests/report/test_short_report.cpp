#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "plimsoll/report/text/sections.h"
#include "plimsoll/report/text/table.h"
#include "report/golden.h"
#include "report/sample_report.h"

namespace test_short_report {

using namespace plimsoll::report;
using namespace plimsoll::literals;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string short_of(const Report& report, bool unicode = false) {
  return to_text(report, {.full = false, .unicode = unicode});
}

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("the short report of plans and runs") {
  check_golden("short_plan_fits.txt", short_of(sample::plan_fits()));
  check_golden("short_plan_does_not_fit.txt", short_of(sample::plan_does_not_fit()));
  check_golden("short_plan_only_just.txt", short_of(sample::plan_hsdp_offload()));
  check_golden("short_run_fits.txt", short_of(sample::fits(), /*unicode=*/true));
  check_golden("short_run_does_not_fit.txt", short_of(sample::does_not_fit()));
  check_golden("short_run_with_warnings.txt", short_of(sample::with_warnings()));
}

TEST_CASE("a short report has at most 20 lines, and only the verdict is wider than 80 columns") {
  Report many = sample::plan_fits();
  for (int i = 0; i < 30; ++i) many.peak.categories.push_back({"category " + std::to_string(i), 1_MiB});
  for (const Report& report : {sample::plan_fits(), sample::plan_does_not_fit(), sample::plan_hsdp_offload(),
                               sample::fits(), sample::does_not_fit(), sample::with_warnings(), many}) {
    for (const bool unicode : {false, true}) {
      std::istringstream text(short_of(report, unicode));
      CHECK(lines_of(text.str()) <= 20);
      std::string line;
      std::getline(text, line);
      while (std::getline(text, line)) CHECK(width_of(line) <= 80);
    }
  }
  CHECK(has(short_of(many), " smaller parts "));
}

TEST_CASE("the parts of a card that has room sum to the card") {
  const Report report = sample::plan_fits();
  const std::string text = short_of(report);
  CHECK(has(text, "free                    19.11 GiB"));
  CHECK(has(text, "unused cache             3.00 GiB"));
  CHECK(has(text, "context, NCCL, handles   1.00 GiB"));
  CHECK_FALSE(has(short_of(sample::plan_does_not_fit()), "free  "));
}

TEST_CASE("a quiet report, and one of a script without a GPU, is the verdict") {
  CHECK(lines_of(to_text(sample::plan_fits(), {.quiet = true, .full = false})) == 1);
  Report none;
  none.subject = ScriptRun{};
  CHECK(short_of(sample::judged(none)) == "No verdict: the script used no GPU.\n");
}

}  // namespace test_short_report
