#include <doctest/doctest.h>

#include "plimsoll/report/text/sections.h"
#include "report/golden.h"
#include "report/sample_plan.h"

namespace test_plan_text {

using namespace plimsoll::report;
using namespace plimsoll::literals;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the text of a plan that fits") { check_golden("plan_fits.txt", to_text(sample::plan_fits())); }

TEST_CASE("the text of a plan that does not fit") {
  check_golden("plan_does_not_fit.txt", to_text(sample::plan_does_not_fit()));
}

TEST_CASE("the text of a plan with replicas, offload and experts, modules three deep") {
  check_golden("plan_hsdp_offload.txt", to_text(sample::plan_hsdp_offload(), {.depth = 3}));
}

TEST_CASE("a quiet plan is its verdict") {
  CHECK(to_text(sample::plan_fits(), {.quiet = true}) ==
        "Fits: 60.00 of 79.11 GiB used on an H100-80GB, 19.11 GiB left.\n");
}

TEST_CASE("colour is used only when told, amounts are in one unit when told") {
  CHECK(to_text(sample::plan_does_not_fit()).find('\x1b') == std::string::npos);
  CHECK(
      to_text(sample::plan_does_not_fit(), {.colour = Colour::kAlways}).starts_with("\x1b[1;31mDoes not fit:\x1b[0m"));
  const std::string text = to_text(sample::plan_fits(), {.unit = ByteUnit::kMiB});
  CHECK(text.starts_with("Fits: 61440.00 of 81008.06 MiB used on an H100-80GB, 19568.06 MiB left."));
  CHECK_FALSE(has(text, "GiB"));
}

TEST_CASE("the text names the book that exceeds the card: active, reserved, device, or none") {
  Report report = sample::plan_does_not_fit();
  CHECK(to_text(report).starts_with(
      "Does not fit: needs 96.00 GiB, the H100-80GB has 79.11 GiB.\n"
      "  The tensors alone (92.00 GiB) exceed the card; less fragmentation would not help.\n"));
  report.peak.active = 70_GiB;
  CHECK(
      has(to_text(report), "The tensors (70.00 GiB) do not exceed the card, the allocator's segments (95.00 GiB) do."));
  report.peak.reserved = 79_GiB;
  CHECK(
      has(to_text(report), "The tensors (70.00 GiB) and the allocator's segments (79.00 GiB) do not exceed the card."));
  report.peak.device = 79_GiB;
  CHECK(to_text(report).starts_with(
      "Does not fit: memory ran out, although the job uses only 79.00 of 79.11 GiB on a larger card than the "
      "H100-80GB.\n"));
  CHECK(has(to_text(report), "On a larger card the job needs less than this card has."));
}

TEST_CASE("where memory ran out: while the model was built, in a library, under a limit of the job's own") {
  Report report = sample::plan_does_not_fit();
  report.oom->step.reset();
  report.oom->phase.clear();
  report.oom->module.clear();
  CHECK(has(to_text(report), "Memory ran out while the model was built: 2.00 GiB requested, 1.00 GiB free ("));
  report.oom->requested = 0;
  report.oom->message = "NCCL: out of memory\nand more";
  report.oom->device_total = 40_GiB;
  CHECK(has(to_text(report), "built: NCCL: out of memory, 1.00 GiB free of the 40.00 GiB that"));
}

TEST_CASE("no deeper modules are listed than asked for") {
  CHECK_FALSE(has(to_text(sample::plan_fits(), {.depth = 1}), "layers.0"));
  CHECK(has(to_text(sample::plan_fits(), {.depth = 0}), "(the model) *"));
}

TEST_CASE("modules that differ by what the allocator leaves over share a row") {
  Report report = sample::plan_fits();
  report.modules.clear();
  for (const plimsoll::Bytes rest : {0_B, 1_MiB, 0_B}) {
    report.modules.push_back(sample::module("layers." + std::to_string(report.modules.size()), "Block", 1, 1_GiB,
                                            {{"Activation", 1_GiB + rest}}));
  }
  CHECK(has(to_text(report), "layers.0-2"));
  report.modules[1].at_peak[0].bytes += 1;
  CHECK(has(to_text(report), "layers.1 "));
}

TEST_CASE("very many modules that differ are cut, and counted") {
  Report report = sample::plan_fits();
  report.modules.clear();
  for (int i = 0; i < 100; ++i) {
    report.modules.push_back(sample::module("layers." + std::to_string(i), "Block", 1, 1_GiB,
                                            {{"Activation", 1_GiB + 2_MiB * static_cast<plimsoll::Bytes>(i)}}));
  }
  const std::string text = to_text(report);
  CHECK(has(text, "layers.59 "));
  CHECK_FALSE(has(text, "layers.60 "));
  CHECK(has(text, "and 40 rows more; the JSON has them all"));
}

TEST_CASE("no line of a table of modules is wider than 120 columns") {
  Report report = sample::plan_fits();
  report.modules[1].name = "a_module_with_a_rather_long_name.of_two_parts";
  const std::string text = to_text(report, {.unit = ByteUnit::kB});
  for (std::size_t at = text.find("The peak by module"); at < text.size();) {
    const std::size_t end = text.find('\n', at);
    CHECK(width_of(text.substr(at, end - at)) <= 120);
    at = end + 1;
  }
}

TEST_CASE("a setting is found by its name with hyphens or underscores") {
  const JobValues job = sample::plan_fits().planned()->job;
  CHECK(shown(job_value(job, "seq_len")) == "8192");
  CHECK(shown(job_value(job, "clip-grad-norm")) == "1");
  CHECK(shown(job_value(job, "keep_logits")) == "no");
  CHECK(shown(job_value(job, "gpu_memory")) == "none");
  CHECK(shown(job_value(job, "absent")) == "none");
}

}  // namespace test_plan_text
