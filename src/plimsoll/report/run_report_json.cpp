#include "plimsoll/report/json_pieces.h"
#include "plimsoll/report/run_report.h"

namespace plimsoll::report {
namespace {

void put_line(Json& json, const CodeLine& where) {
  json["file"] = text_or_null(where.file);
  json["line"] = where.line > 0 ? Json(where.line) : Json(nullptr);
  json["function"] = text_or_null(where.function);
  json["code"] = text_or_null(where.code);
}

Json allocations(const std::vector<LiveAllocations>& live) {
  Json list = Json::array();
  for (const LiveAllocations& entry : live) {
    Json json{{"bytes", entry.bytes}, {"count", entry.count}};
    put_line(json, entry.where);
    list.push_back(json);
  }
  return list;
}

Json oom_json(const OutOfMemory& oom) {
  Json json{{"requested_bytes", oom.requested},       {"device_free_bytes", oom.device_free},
            {"device_total_bytes", oom.device_total}, {"active_bytes", oom.active},
            {"reserved_bytes", oom.reserved},         {"step", or_null(oom.step)},
            {"phase", text_or_null(oom.phase)}};
  put_line(json, oom.where);
  json["message"] = oom.message;
  json["device_parts"] = device_parts_json(oom.device_parts);
  json["top"] = allocations(oom.alive);
  return json;
}

Json read_back_json(const ReadBack& entry) {
  Json json{{"count", entry.count},
            {"bytes", entry.bytes},
            {"op", text_or_null(entry.op)},
            {"decided_shape", entry.decided_shape}};
  put_line(json, entry.where);
  return json;
}

}  // namespace

std::string to_json(const RunReport& report) {
  Json json;
  json["version"] = 1;
  json["fits"] = or_null(report.fits());
  json["gpu"] = gpu_json(report.gpu);
  json["gpus_per_node"] = report.gpus_per_node;
  json["world_size"] = report.world_size;
  json["rank"] = report.rank;
  json["processes"] = report.processes;
  json["device"] = report.device;
  json["script"] = text_or_null(report.script);
  json["torch"] = text_or_null(report.torch);
  json["python"] = text_or_null(report.python);
  json["complete"] = report.complete;
  json["peak"] = peak_json(report.peak);
  if (!report.is_attributed()) json["peak"]["categories"] = nullptr;
  json["before_steps"] = report.before_steps ? step_json(*report.before_steps) : Json(nullptr);
  json["steps"] = Json::array();
  for (const StepPeaks& step : report.steps) json["steps"].push_back(step_json(step));
  json["finished_steps"] = report.finished_steps;
  json["after_steps"] = report.after_steps ? step_json(*report.after_steps) : Json(nullptr);
  json["modules"] = report.is_attributed() ? modules_json(report.modules) : Json(nullptr);
  json["causes"] = report.is_attributed() ? causes_json(report.causes) : Json(nullptr);
  json["attribution"] = text_or_null(report.attribution);
  json["top"] = allocations(report.top);
  json["top_total_bytes"] = report.top_total;
  json["host_pinned_bytes"] = report.host_pinned;
  json["read_backs"] = report.read_backs;
  json["read_back_lines"] = Json::array();
  for (const ReadBack& entry : report.read_back_lines) json["read_back_lines"].push_back(read_back_json(entry));
  json["unpretended"] = report.unpretended;
  json["ooms_handled"] = report.ooms_handled;
  json["alloc_retries"] = report.alloc_retries;
  json["defects"] = report.defects;
  json["oom"] = report.oom ? oom_json(*report.oom) : Json(nullptr);
  json["error"] = report.error ? Json{{"type", report.error->type}, {"message", report.error->message}} : Json(nullptr);
  json["exit_code"] = report.exit_code;
  json["signal"] = or_null(report.signal);
  json["seconds"] = report.seconds;
  json["stopped_after_steps"] = report.stopped_after_steps;
  json["other_devices"] = Json::array();
  for (const OtherDevice& other : report.other_devices) {
    json["other_devices"].push_back({{"device", other.device}, {"reserved_peak_bytes", other.reserved_peak}});
  }
  return dumped(json);  // A line of source may hold bytes that are not UTF-8.
}

}  // namespace plimsoll::report
