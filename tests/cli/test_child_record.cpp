#include <doctest/doctest.h>

#include <array>
#include <fstream>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/child_record.h"
#include "plimsoll/cli/documents.h"
#include "plimsoll/cli/process/environment.h"

namespace test_child_record {

using namespace plimsoll::cli;
using plimsoll::FormatError;
using plimsoll::report::Report;
using plimsoll::report::ScriptRun;

namespace {

const std::string kRecord = R"json({"version": 2, "complete": true, "pid": 7, "main": true, "torch": "2.13.0+cu130",
 "python": "3.11.7", "script": "train.py", "device": 1, "world_size": 8, "rank": 0,
 "peak": {"active_bytes": 10, "allocated_bytes": 9, "reserved_bytes": 20, "device_bytes": 30, "segments": 4, "step": 2,
          "phase": "backward", "device_parts": {"segments": 20, "context": 6, "nccl": 3, "handles": 1}},
 "before_steps": {"active_peak_bytes": 3, "phases": {"other": {"active_peak_bytes": 3}}},
 "steps": [{"step": 0, "active_peak_bytes": 8, "allocated_peak_bytes": 7, "reserved_peak_bytes": 16, "phases":
   {"forward": {"active_peak_bytes": 5, "allocated_peak_bytes": 4, "reserved_peak_bytes": 6, "active_end_bytes": 2,
    "reserved_end_bytes": 3}, "backward": {"active_peak_bytes": 8}}}],
 "after_steps": null, "finished_steps": 1,
 "top": [{"bytes": 6, "count": 2, "file": "m.py", "line": 4, "function": "f", "code": "x = y"},
         {"bytes": 1, "count": 1, "file": null, "line": null, "function": null, "code": null}],
 "top_total_bytes": 10, "host_pinned_bytes": 5, "read_backs": 3,
 "read_back_lines": [{"file": "m.py", "line": 9, "function": "g", "count": 3, "bytes": 12, "op": null,
                      "decided_shape": true, "code": "n = int(x)"}],
 "unpretended": ["cufftXtExec"], "ooms_handled": 1, "alloc_retries": 4, "defects": ["Oom.install: x"], "oom": null, "error": null, "exit_code": 0, "seconds": 1.5,
 "stopped_after_steps": true, "other_devices": [{"device": 0, "reserved_peak_bytes": 2}]})json";

const std::string kAttributed = R"json({"version": 2,
 "peak": {"active_bytes": 10, "module": "layers.1", "stage": "pre-backward", "categories": {"Temp": 7, "Activation": 3}},
 "modules": [{"name": "", "type": "Net", "fsdp_unit": true, "parameters": 6, "highest_bytes": 10, "total_bytes": 9,
              "at_peak": {"Temp": 7, "Activation": 2}},
             {"name": "layers.1", "type": "Block", "fsdp_unit": false, "parameters": 2, "highest_bytes": 8,
              "total_bytes": 4, "at_peak": {"Temp": 4}}],
 "causes": [{"bytes": 10, "category": "Temp", "why": "w", "owners": [{"name": "layers.1", "bytes": 4}], "allocations": 2}],
 "attribution": null})json";

Record record(std::uint64_t device_bytes, bool main) {
  Record made;
  made.report.subject = ScriptRun{};
  made.main = main;
  made.report.peak.device = device_bytes;
  return made;
}

Report nothing_known() {
  Report report;
  report.subject = ScriptRun{};
  return report;
}

}  // namespace

TEST_CASE("a record is read whole") {
  const Record read = parse_record(kRecord, "7.json");
  const Report& values = read.report;
  const ScriptRun& run = *values.script();
  CHECK(read.main);
  CHECK(run.complete);
  CHECK(values.torch == "2.13.0+cu130");
  CHECK(run.python == "3.11.7");
  CHECK(run.script == "train.py");
  CHECK(run.device == 1);
  CHECK(values.peak.active == 10);
  CHECK(values.peak.allocated == 9);
  CHECK(values.peak.reserved == 20);
  CHECK(values.peak.device == 30);
  CHECK(values.peak.segments == 4);
  CHECK(values.peak.step == 2);
  CHECK(values.peak.phase == "backward");
  CHECK(values.peak.device_parts.nccl == 3);
  REQUIRE(values.before_steps.has_value());
  CHECK_FALSE(values.before_steps->step.has_value());
  CHECK_FALSE(values.after_steps.has_value());
  REQUIRE(values.steps.size() == 1);
  CHECK(run.finished_steps == 1);
  REQUIRE(values.steps[0].phases.size() == 2);
  CHECK(values.steps[0].phases[0].first == "forward");
  CHECK(values.steps[0].phases[0].second.reserved_end == 3);
  REQUIRE(run.top.size() == 2);
  CHECK(run.top[0].where.code == "x = y");
  CHECK(run.top[1].where.file.empty());
  REQUIRE(run.read_back_lines.size() == 1);
  CHECK(run.read_back_lines[0].decided_shape);
  CHECK(run.read_back_lines[0].op.empty());
  CHECK(run.unpretended == std::vector<std::string>{"cufftXtExec"});
  CHECK(run.ooms_handled == 1);
  CHECK(values.alloc_retries == 4);
  CHECK(run.defects == std::vector<std::string>{"Oom.install: x"});
  CHECK(values.seconds == 1.5);
  CHECK(run.stopped_after_steps);
  CHECK(run.other_devices.at(0).reserved_peak == 2);
}

TEST_CASE("the attribution of the peak is read in the order of the record") {
  const Report values = parse_record(kAttributed, "7.json").report;
  CHECK(values.is_attributed());
  CHECK(values.peak.module == "layers.1");
  CHECK(values.peak.stage == "pre-backward");
  using plimsoll::report::CategoryBytes;
  CHECK(values.peak.categories == std::vector<CategoryBytes>{{"Temp", 7}, {"Activation", 3}});
  REQUIRE(values.modules.size() == 2);
  CHECK(values.modules[0].name.empty());
  CHECK(values.modules[0].type == "Net");
  CHECK(values.modules[0].fsdp_unit);
  CHECK(values.modules[0].parameters == 6);
  CHECK(values.modules[0].highest == 10);
  CHECK(values.modules[0].total == 9);
  CHECK(values.modules[0].at_peak == std::vector<CategoryBytes>{{"Temp", 7}, {"Activation", 2}});
  CHECK(values.modules[1].name == "layers.1");
  REQUIRE(values.causes.size() == 1);
  CHECK(values.causes[0].bytes == 10);
  CHECK(values.causes[0].category == "Temp");
  CHECK(values.causes[0].why == "w");
  CHECK(values.causes[0].allocations == 2);
  CHECK(values.causes[0].owners == std::vector<std::pair<std::string, plimsoll::Bytes>>{{"layers.1", 4}});
  CHECK(values.attribution.empty());
}

TEST_CASE("a record without attribution, with or without a reason, is accepted") {
  for (const char* fields :
       {"", R"(, "peak": {"categories": null, "module": null, "stage": null}, "modules": null, "causes": null)"}) {
    const Report values = parse_record(std::string(R"({"version": 2)") + fields + "}", "x").report;
    CHECK_FALSE(values.is_attributed());
    CHECK(values.peak.module.empty());
    CHECK(values.modules.empty());
    CHECK(values.causes.empty());
    CHECK(values.attribution.empty());
  }
  CHECK(parse_record(R"({"version": 2, "attribution": "no room"})", "x").report.attribution == "no room");
}

TEST_CASE("an out-of-memory error and an error of the script are read") {
  const Record read = parse_record(
      R"({"version": 2, "error": {"type": "OutOfMemoryError", "message": "no"}, "oom": {"requested_bytes": 5,
          "device_free_bytes": 2, "device_total_bytes": 9, "step": null, "phase": "forward", "file": "m.py", "line": 3,
          "function": "f", "code": "c", "active_bytes": 6, "reserved_bytes": 7, "message": "no",
          "device_parts": {"segments": 7, "context": 1, "nccl": 2, "handles": 3},
          "top": [{"bytes": 4, "count": 1, "file": "m.py", "line": 1, "function": "f", "code": "d"}]}})",
      "x");
  REQUIRE(read.report.oom.has_value());
  CHECK(read.report.oom->requested == 5);
  CHECK(read.report.oom->device_free == 2);
  CHECK_FALSE(read.report.oom->step.has_value());
  CHECK(read.report.oom->alive.at(0).bytes == 4);
  const plimsoll::report::DeviceParts parts = read.report.oom->device_parts.value();
  CHECK(std::array{parts.segments, parts.context, parts.nccl, parts.handles} ==
        std::array<plimsoll::Bytes, 4>{7, 1, 2, 3});
  CHECK(read.report.script()->error->type == "OutOfMemoryError");
}

TEST_CASE("text that is not a record is refused by its name") {
  CHECK_THROWS_WITH_AS(parse_record("{", "7.json"), doctest::Contains("7.json: not JSON"), FormatError);
  CHECK_THROWS_WITH_AS(parse_record("[]", "7.json"), "7.json: the document must be an object, found a list",
                       FormatError);
  CHECK_THROWS_WITH_AS(parse_record("{}", "7.json"), "7.json: field 'version' is missing", FormatError);
  CHECK_THROWS_WITH_AS(parse_record(R"({"version": 1})", "7.json"), "7.json: field 'version' must be 2, found 1",
                       FormatError);
  CHECK_THROWS_WITH_AS(parse_record(R"({"version": 2, "seconds": "long"})", "7.json"),
                       "7.json: field 'seconds' must be a number, found \"long\"", FormatError);
  CHECK_THROWS_WITH_AS(parse_record(R"({"version": 2, "peak": {"categories": {"Temp": -1}}})", "7.json"),
                       "7.json: field 'peak.categories.Temp' must be a whole number from 0 to 9223372036854775807, "
                       "found -1",
                       FormatError);
  CHECK_THROWS_WITH_AS(parse_record(R"({"version": 2, "causes": {}})", "7.json"),
                       "7.json: field 'causes' must be a list, found an object", FormatError);
}

TEST_CASE("all records of a folder are read, and unreadable ones are named") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "1.json") << kRecord;
  std::ofstream(folder.path() / "2.json") << "half a rec";
  std::ofstream(folder.path() / "3.json.partial") << "not finished";
  const Records found = read_records(folder.path());
  CHECK(found.records.size() == 1);
  REQUIRE(found.complaints.size() == 1);
  CHECK(found.complaints[0].starts_with("the record 2.json: not JSON"));
  CHECK(read_records("/nowhere").records.empty());
}

TEST_CASE("the report is that of the process with the highest device peak; the error is the main one's") {
  std::vector<Record> records{record(10, true), record(30, false), record(0, false)};
  records[0].report.as_script().error = plimsoll::report::ScriptError{"ValueError", "x"};
  records[0].report.as_script().script = "train.py";
  records[2].report.oom = plimsoll::report::OutOfMemory{};
  Report base;
  ScriptRun& known = base.subject.emplace<ScriptRun>();
  base.gpu.name = "H100-80GB";
  known.world_size = 8;
  known.rank = 3;
  const Report merged = merge(records, base, {1, std::nullopt});
  CHECK(merged.peak.device == 30);
  CHECK(merged.script()->processes == 2);
  CHECK(merged.script()->error->type == "ValueError");
  CHECK(merged.script()->script == "train.py");
  CHECK(merged.oom.has_value());
  CHECK(merged.gpu.name == "H100-80GB");
  CHECK(merged.script()->world_size == 8);
  CHECK(merged.script()->rank == 3);
  CHECK(merged.script()->exit_code == 1);
}

TEST_CASE("categories, modules and causes are those of the process with the highest device peak") {
  std::vector<Record> records{record(10, true), parse_record(kAttributed, "7.json"), record(20, false)};
  records[0].report.peak.categories = {{"Gradient", 1}};
  records[0].report.attribution = "of another process";
  records[1].report.peak.device = 30;
  const Report merged = merge(records, nothing_known(), {0, std::nullopt});
  CHECK(merged.peak.categories == records[1].report.peak.categories);
  CHECK(merged.peak.module == "layers.1");
  CHECK(merged.modules.size() == 2);
  CHECK(merged.causes.size() == 1);
  CHECK(merged.attribution.empty());
  records[1].report.peak.device = 5;
  const Report other = merge(records, nothing_known(), {0, std::nullopt});
  CHECK_FALSE(other.is_attributed());
  CHECK(other.modules.empty());
}

TEST_CASE("without any record the report says how it ended") {
  Report base;
  ScriptRun& known = base.subject.emplace<ScriptRun>();
  known.script = "train.py";
  const Report merged = merge({}, base, {139, 11});
  CHECK(merged.script()->processes == 0);
  CHECK(merged.script()->script == "train.py");
  CHECK(merged.script()->exit_code == 139);
  CHECK(merged.script()->signal == 11);
}

TEST_CASE("settings for the child") {
  RunOptions options;
  CHECK(settings_for_python(options, "/t/r", "/t/s", false) ==
        R"({"record_dir":"/t/r","steps":null,"top":10,"snapshot":null,"progress":false,"categories":true,"depth":2,)"
        R"("main_pid":null})");
  options.steps = 2;
  options.top = 3;
  options.snapshot = "mine.pickle";
  options.categories = false;
  options.depth = 0;
  CHECK(settings_for_python(options, "/t/r", "/t/s", true) ==
        R"({"record_dir":"/t/r","steps":2,"top":3,"snapshot":"/t/s","progress":true,"categories":false,"depth":0,)"
        R"("main_pid":null})");
}

}  // namespace test_child_record
