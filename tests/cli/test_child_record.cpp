#include <doctest/doctest.h>

#include <fstream>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/child_record.h"
#include "plimsoll/cli/output_file.h"

using namespace plimsoll::cli;
using plimsoll::FormatError;
using plimsoll::report::RunReport;

namespace {

const std::string kRecord = R"json({"version": 1, "complete": true, "pid": 7, "main": true, "torch": "2.13.0+cu130",
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

Record record(std::uint64_t device_bytes, bool main) {
  Record made;
  made.main = main;
  made.values.peak.device = device_bytes;
  return made;
}

}  // namespace

TEST_CASE("a record is read whole") {
  const Record read = parse_record(kRecord, "7.json");
  const RunReport& values = read.values;
  CHECK(read.main);
  CHECK(values.complete);
  CHECK(values.torch == "2.13.0+cu130");
  CHECK(values.python == "3.11.7");
  CHECK(values.script == "train.py");
  CHECK(values.device == 1);
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
  CHECK(values.finished_steps == 1);
  REQUIRE(values.steps[0].phases.size() == 2);
  CHECK(values.steps[0].phases[0].first == "forward");
  CHECK(values.steps[0].phases[0].second.reserved_end == 3);
  REQUIRE(values.top.size() == 2);
  CHECK(values.top[0].where.code == "x = y");
  CHECK(values.top[1].where.file.empty());
  REQUIRE(values.read_back_lines.size() == 1);
  CHECK(values.read_back_lines[0].decided_shape);
  CHECK(values.read_back_lines[0].op.empty());
  CHECK(values.unpretended == std::vector<std::string>{"cufftXtExec"});
  CHECK(values.ooms_handled == 1);
  CHECK(values.alloc_retries == 4);
  CHECK(values.defects == std::vector<std::string>{"Oom.install: x"});
  CHECK(values.seconds == 1.5);
  CHECK(values.stopped_after_steps);
  CHECK(values.other_devices.at(0).reserved_peak == 2);
}

TEST_CASE("an out-of-memory error and an error of the script are read") {
  const Record read = parse_record(
      R"({"version": 1, "error": {"type": "OutOfMemoryError", "message": "no"}, "oom": {"requested_bytes": 5,
          "device_free_bytes": 2, "device_total_bytes": 9, "step": null, "phase": "forward", "file": "m.py", "line": 3,
          "function": "f", "code": "c", "active_bytes": 6, "reserved_bytes": 7, "message": "no",
          "top": [{"bytes": 4, "count": 1, "file": "m.py", "line": 1, "function": "f", "code": "d"}]}})",
      "x");
  REQUIRE(read.values.oom.has_value());
  CHECK(read.values.oom->requested == 5);
  CHECK(read.values.oom->device_free == 2);
  CHECK_FALSE(read.values.oom->step.has_value());
  CHECK(read.values.oom->alive.at(0).bytes == 4);
  CHECK(read.values.error->type == "OutOfMemoryError");
}

TEST_CASE("what is not a record is refused by its name") {
  CHECK_THROWS_WITH_AS(parse_record("{", "7.json"), doctest::Contains("7.json is not a record"), FormatError);
  CHECK_THROWS_WITH_AS(parse_record("[]", "7.json"), "7.json is not a record: it is not a JSON object", FormatError);
  CHECK_THROWS_WITH_AS(parse_record("{}", "7.json"), "7.json is not a record: its version is 0, expected 1",
                       FormatError);
  CHECK_THROWS_WITH_AS(parse_record(R"({"version": 1, "seconds": "long"})", "7.json"),
                       "7.json is not a record: 'seconds' is of the wrong type", FormatError);
}

TEST_CASE("all records of a folder are read, and those that are none are named") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "1.json") << kRecord;
  std::ofstream(folder.path() / "2.json") << "half a rec";
  std::ofstream(folder.path() / "3.json.partial") << "not finished";
  const Records found = read_records(folder.path());
  CHECK(found.records.size() == 1);
  REQUIRE(found.complaints.size() == 1);
  CHECK(found.complaints[0].starts_with("2.json is not a record"));
  CHECK(read_records("/nowhere").records.empty());
}

TEST_CASE("the report is that of the process with the highest device peak; the error is the main one's") {
  std::vector<Record> records{record(10, true), record(30, false), record(0, false)};
  records[0].values.error = plimsoll::report::ScriptError{"ValueError", "x"};
  records[0].values.script = "train.py";
  records[2].values.oom = plimsoll::report::OutOfMemory{};
  RunReport base;
  base.gpu.name = "H100-80GB";
  base.world_size = 8;
  base.rank = 3;
  const RunReport merged = merge(records, base, {1, std::nullopt});
  CHECK(merged.peak.device == 30);
  CHECK(merged.processes == 2);
  CHECK(merged.error->type == "ValueError");
  CHECK(merged.script == "train.py");
  CHECK(merged.oom.has_value());
  CHECK(merged.gpu.name == "H100-80GB");
  CHECK(merged.world_size == 8);
  CHECK(merged.rank == 3);
  CHECK(merged.exit_code == 1);
}

TEST_CASE("without any record the report says how it ended") {
  RunReport base;
  base.script = "train.py";
  const RunReport merged = merge({}, base, {139, 11});
  CHECK(merged.processes == 0);
  CHECK(merged.script == "train.py");
  CHECK(merged.exit_code == 139);
  CHECK(merged.signal == 11);
}

TEST_CASE("settings for the child") {
  CHECK(to_json(RunSettings{.record_folder = "/t/r"}) ==
        R"({"record_dir":"/t/r","steps":null,"top":10,"snapshot":null,"progress":false,"main_pid":null})");
  CHECK(to_json(RunSettings{.record_folder = "/t/r", .steps = 2, .top = 3, .snapshot = "/t/s", .progress = true}) ==
        R"({"record_dir":"/t/r","steps":2,"top":3,"snapshot":"/t/s","progress":true,"main_pid":null})");
}
