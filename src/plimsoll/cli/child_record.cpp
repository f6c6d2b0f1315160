#include "plimsoll/cli/child_record.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "plimsoll/base/errors.h"
#include "plimsoll/report/json_reader.h"

namespace plimsoll::cli {
namespace {

// Ordered: the phases of a step stand in the order in which they were written.
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// Reads `json[key]` into `target`, which keeps its value where the key is missing or null.
template <typename T>
void read(const Json& json, const char* key, T& target) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return;
  try {
    found->get_to(target);
  } catch (const Json::exception&) {
    throw FormatError("'" + std::string(key) + "' is of the wrong type");
  }
}

template <typename T>
void read(const Json& json, const char* key, std::optional<T>& target) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return;
  T value{};
  read(json, key, value);
  target = value;
}

/// Calls `use` with `json[key]` where it is there and not null.
template <typename Use>
void with(const Json& json, const char* key, const Use& use) {
  const auto found = json.find(key);
  if (found != json.end() && !found->is_null()) use(*found);
}

report::CodeLine code_line(const Json& json) {
  report::CodeLine where;
  read(json, "file", where.file);
  read(json, "line", where.line);
  read(json, "function", where.function);
  read(json, "code", where.code);
  return where;
}

std::vector<report::LiveAllocations> allocations(const Json& list) {
  std::vector<report::LiveAllocations> live;
  for (const Json& json : list) {
    report::LiveAllocations entry;
    read(json, "bytes", entry.bytes);
    read(json, "count", entry.count);
    entry.where = code_line(json);
    live.push_back(entry);
  }
  return live;
}

report::StepPeaks step_peaks(const Json& json) {
  report::StepPeaks step;
  read(json, "step", step.step);
  read(json, "active_peak_bytes", step.active_peak);
  read(json, "allocated_peak_bytes", step.allocated_peak);
  read(json, "reserved_peak_bytes", step.reserved_peak);
  with(json, "phases", [&](const Json& phases) {
    for (const auto& [name, phase] : phases.items()) {
      report::PhasePeaks peaks;
      read(phase, "active_peak_bytes", peaks.active_peak);
      read(phase, "allocated_peak_bytes", peaks.allocated_peak);
      read(phase, "reserved_peak_bytes", peaks.reserved_peak);
      read(phase, "active_end_bytes", peaks.active_end);
      read(phase, "reserved_end_bytes", peaks.reserved_end);
      step.phases.emplace_back(name, peaks);
    }
  });
  return step;
}

report::DeviceParts device_parts(const Json& json) {
  report::DeviceParts parts;
  with(json, "device_parts", [&](const Json& found) {
    read(found, "segments", parts.segments);
    read(found, "context", parts.context);
    read(found, "nccl", parts.nccl);
    read(found, "handles", parts.handles);
  });
  return parts;
}

report::AttributedPeak peak_of(const Json& json) {
  report::AttributedPeak peak;
  read(json, "active_bytes", peak.active);
  read(json, "allocated_bytes", peak.allocated);
  read(json, "reserved_bytes", peak.reserved);
  read(json, "device_bytes", peak.device);
  read(json, "segments", peak.segments);
  read(json, "step", peak.step);
  read(json, "phase", peak.phase);
  read(json, "module", peak.module);
  read(json, "stage", peak.stage);
  peak.device_parts = device_parts(json);
  return peak;
}

report::OutOfMemory out_of_memory(const Json& json) {
  report::OutOfMemory oom;
  read(json, "requested_bytes", oom.requested);
  read(json, "device_free_bytes", oom.device_free);
  read(json, "device_total_bytes", oom.device_total);
  read(json, "active_bytes", oom.active);
  read(json, "reserved_bytes", oom.reserved);
  read(json, "step", oom.step);
  read(json, "phase", oom.phase);
  read(json, "message", oom.message);
  oom.where = code_line(json);
  oom.device_parts = device_parts(json);
  with(json, "top", [&](const Json& list) { oom.alive = allocations(list); });
  return oom;
}

report::ReadBack read_back(const Json& json) {
  report::ReadBack entry;
  entry.where = code_line(json);
  read(json, "count", entry.count);
  read(json, "bytes", entry.bytes);
  read(json, "op", entry.op);
  read(json, "decided_shape", entry.decided_shape);
  return entry;
}

/// Whose the memory of the peak was. It stands here as in the documents, and is read by the same code, which asks for
/// every field.
void read_attribution(const Json& json, report::RunReport& values) {
  const report::Fields record(json, "in it");
  with(json, "peak", [&](const Json& peak) {
    with(peak, "categories", [&](const Json&) {
      values.peak.categories = report::read_categories(record.object("peak").object("categories"));
    });
  });
  with(json, "modules", [&](const Json&) { values.modules = report::read_modules(record); });
  with(json, "causes", [&](const Json&) { values.causes = report::read_causes(record); });
  read(json, "attribution", values.attribution);
}

Record record_of(const Json& json) {
  int version = 0;
  read(json, "version", version);
  if (version != 1) throw FormatError("its version is " + std::to_string(version) + ", expected 1");
  Record record;
  report::RunReport& values = record.values;
  read(json, "main", record.main);
  read(json, "complete", values.complete);
  read(json, "torch", values.torch);
  read(json, "python", values.python);
  read(json, "script", values.script);
  read(json, "device", values.device);
  with(json, "peak", [&](const Json& peak) { values.peak = peak_of(peak); });
  read_attribution(json, values);
  with(json, "before_steps", [&](const Json& step) { values.before_steps = step_peaks(step); });
  with(json, "after_steps", [&](const Json& step) { values.after_steps = step_peaks(step); });
  with(json, "steps", [&](const Json& steps) {
    for (const Json& step : steps) values.steps.push_back(step_peaks(step));
  });
  values.finished_steps = values.steps.size();
  read(json, "finished_steps", values.finished_steps);
  with(json, "top", [&](const Json& top) { values.top = allocations(top); });
  read(json, "top_total_bytes", values.top_total);
  read(json, "host_pinned_bytes", values.host_pinned);
  read(json, "read_backs", values.read_backs);
  with(json, "read_back_lines", [&](const Json& lines) {
    for (const Json& line : lines) values.read_back_lines.push_back(read_back(line));
  });
  read(json, "unpretended", values.unpretended);
  read(json, "ooms_handled", values.ooms_handled);
  read(json, "alloc_retries", values.alloc_retries);
  read(json, "defects", values.defects);
  with(json, "oom", [&](const Json& oom) { values.oom = out_of_memory(oom); });
  with(json, "error", [&](const Json& error) {
    values.error.emplace();
    read(error, "type", values.error->type);
    read(error, "message", values.error->message);
  });
  read(json, "seconds", values.seconds);
  read(json, "stopped_after_steps", values.stopped_after_steps);
  with(json, "other_devices", [&](const Json& others) {
    for (const Json& other : others) {
      report::OtherDevice entry;
      read(other, "device", entry.device);
      read(other, "reserved_peak_bytes", entry.reserved_peak);
      values.other_devices.push_back(entry);
    }
  });
  return record;
}

}  // namespace

std::string to_json(const RunSettings& settings) {
  Json json;
  json["record_dir"] = settings.record_folder.string();
  json["steps"] = settings.steps ? Json(*settings.steps) : Json(nullptr);
  json["top"] = settings.top;
  json["snapshot"] = settings.snapshot ? Json(settings.snapshot->string()) : Json(nullptr);
  json["progress"] = settings.progress;
  json["categories"] = settings.categories;
  json["depth"] = settings.depth;
  json["main_pid"] = nullptr;
  return json.dump();
}

Record parse_record(const std::string& text, const std::string& origin) {
  try {
    const Json json = Json::parse(text);
    if (!json.is_object()) throw FormatError("it is not a JSON object");
    return record_of(json);
  } catch (const Json::exception& error) {
    throw FormatError(origin + " is not a record: " + error.what());
  } catch (const FormatError& error) {
    throw FormatError(origin + " is not a record: " + error.what());
  }
}

Records read_records(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  Records found;
  for (const fs::path& file : files) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    try {
      found.records.push_back(parse_record(text.str(), file.filename().string()));
    } catch (const FormatError& problem) {
      found.complaints.emplace_back(problem.what());
    }
  }
  return found;
}

report::RunReport merge(const std::vector<Record>& records, report::RunReport base, const ChildExit& exit) {
  const auto highest = std::max_element(records.begin(), records.end(), [](const Record& a, const Record& b) {
    return a.values.peak.device < b.values.peak.device;
  });
  report::RunReport merged = highest == records.end() ? report::RunReport{} : highest->values;
  merged.recorded = !records.empty();
  merged.processes = static_cast<int>(
      std::count_if(records.begin(), records.end(), [](const Record& r) { return r.values.peak.device > 0; }));
  for (const Record& record : records) {
    if (!merged.oom) merged.oom = record.values.oom;
    if (record.main) {
      merged.error = record.values.error;
      merged.script = record.values.script;
      merged.seconds = record.values.seconds;
      merged.stopped_after_steps = record.values.stopped_after_steps;
    }
  }
  merged.gpu = base.gpu;
  merged.gpus_per_node = base.gpus_per_node;
  merged.world_size = base.world_size;
  merged.rank = base.rank;
  if (merged.script.empty()) merged.script = base.script;
  merged.exit_code = exit.exit_code;
  merged.signal = exit.signal;
  return merged;
}

}  // namespace plimsoll::cli
