#include <doctest/doctest.h>

#include "plimsoll/report/document.h"
#include "report/golden.h"
#include "report/sample_searches.h"

namespace test_searches {

using namespace plimsoll::report;
using namespace plimsoll::literals;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("an explanation: the peak cause by cause, and single changes by what they save") {
  check_golden("explanation.txt", explanation_text(sample::plan_does_not_fit(), sample::savings()));
  check_golden("explain.json", to_json(Explanation{sample::plan_does_not_fit(), sample::savings()}));
}

TEST_CASE("a short explanation leaves out small causes, books and changes that save nothing") {
  Report report = sample::plan_does_not_fit();
  report.causes.push_back({.bytes = 1_GiB / 2, .category = "Temp", .why = "temporaries"});
  const std::string text = explanation_text(report, sample::savings(), {.full = false});
  CHECK(has(text, "  and 1 smaller cause, 512.00 MiB (--full lists all)\n"));
  CHECK(has(text, "  Changes that save nothing: 2 (--full lists them)\n"));
  CHECK_FALSE(has(text, "reserved  "));
}

TEST_CASE("without changes an explanation ends with the causes; where none helps it says so") {
  CHECK_FALSE(has(explanation_text(sample::plan_fits(), {}), "one change"));
  const std::string text = explanation_text(sample::plan_fits(), {{"--keep-logits", sample::plan_does_not_fit(), ""}});
  CHECK(has(text, "No change that was tried saves memory"));
  CHECK(has(text, "No help: --keep-logits (+36.00 GiB)"));
}

TEST_CASE("a sweep as text, CSV and JSON") {
  check_golden("sweep.txt", to_text(sample::sweep()));
  check_golden("sweep.csv", to_csv(sample::sweep()));
  check_golden("sweep.json", to_json(sample::sweep()));
}

TEST_CASE("a sweep in which nothing fits begins with that") {
  Sweep sweep = sample::sweep();
  sweep.rows.erase(sweep.rows.begin());
  sweep.rows.erase(sweep.rows.begin() + 1);
  CHECK(to_text(sweep, {.quiet = true}) ==
        "Does not fit: none of 2 combinations of llama3-8b (H100-80GB, 79.11 GiB), 1 could not be run\n");
}

TEST_CASE("a sweep in which no job could be run has no verdict") {
  Sweep sweep = sample::sweep();
  sweep.rows.erase(sweep.rows.begin(), sweep.rows.begin() + 3);
  CHECK(to_text(sweep, {.quiet = true}) ==
        "No verdict: none of 1 combination of llama3-8b (H100-80GB, 79.11 GiB) could be run. The first error: 12 GPUs: "
        "\"replicas\", 8, does not divide them\n");
  CHECK(has(to_json(sweep, JsonForm::kOneLine), R"("fits":null,"outcome":"not run","active_bytes":null)"));
}

TEST_CASE("in a sweep's JSON a value has the type that its text has") {
  Sweep sweep{
      "m", {}, {"keep-logits", "clip", "reshard", "conf", "gpus"}, {{{"true", "0.5", "-", "1e3", "-8"}, {}, "x"}}};
  CHECK(has(to_json(sweep, JsonForm::kOneLine),
            R"("job":{"keep_logits":true,"clip":0.5,"reshard":"-","conf":"1e3","gpus":-8})"));
}

TEST_CASE("a search for a limit as text and JSON, with what binds") {
  check_golden("fit.txt", to_text(sample::fit()));
  check_golden("fit.json", to_json(sample::fit()));
  const auto binding = binding_of(sample::fit());
  REQUIRE(binding);
  CHECK(binding->book == "active");
  CHECK(binding->category == "Activation");
  CHECK(binding->category_bytes == 36_GiB);
}

TEST_CASE("a search that found no value, and one that met no limit") {
  Fit none = sample::fit();
  none.limit.reset();
  none.at_limit.reset();
  CHECK(to_text(none).starts_with("Does not fit: not even with batch 2 (H100-80GB)\n"));
  CHECK(has(to_text(none), " part: Activation, 74.00 GiB."));
  CHECK(has(to_json(none), "\"limit\": null"));
  none.beyond.reset();
  CHECK(to_text(none, {.quiet = true}) == "Does not fit: no batch that was tried (H100-80GB)\n");

  Fit all = sample::fit();
  all.beyond.reset();
  all.at_beyond.reset();
  all.note = "the search ends at 65536";
  CHECK(to_text(all).starts_with(
      "Largest batch: 1; 60.00 of 79.11 GiB used, 19.11 GiB left; nothing larger was tried (H100-80GB)\n"));
  CHECK(has(to_text(all), "note: the search ends at 65536\n"));
  CHECK(has(to_json(all), "\"binds\": null"));
  all.what = "seq-len";
  all.is_models_limit = true;
  CHECK(to_text(all).starts_with("Longest sequence: 1, the model's own limit; 60.00 of 79.11 GiB used, "));
  all.is_models_limit = false;
  all.direction = Fit::Direction::kMinimize;
  all.what = "gpus";
  all.step = 8;
  CHECK(
      to_text(all).starts_with("Fewest GPUs (in steps of 8): 1; 60.00 of 79.11 GiB used, 19.11 GiB left; nothing "
                               "smaller was tried (H100-80GB)\n"));
}

TEST_CASE("beyond the limit no book need exceed the card") {
  Fit fit = sample::fit();
  fit.at_beyond->peak.active = fit.at_beyond->peak.reserved = fit.at_beyond->peak.device = 70_GiB;
  CHECK(has(to_text(fit), "With batch 2 memory runs out, although no book exceeds the card"));
  fit.at_beyond->peak.device = 80_GiB;
  CHECK(has(to_text(fit), "With batch 2 the job needs 80.00 GiB, 911.94 MiB too much."));
}

}  // namespace test_searches
