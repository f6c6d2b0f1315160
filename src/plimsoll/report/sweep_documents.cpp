#include <algorithm>
#include <charconv>

#include "plimsoll/report/json_pieces.h"
#include "plimsoll/report/sweep.h"

namespace plimsoll::report {
namespace {

/// A flag's value with its type: the same text is the same value in every row, with a result or without.
Json typed(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  const char* end = text.data() + text.size();
  std::int64_t whole = 0;
  const auto as_whole = std::from_chars(text.data(), end, whole);
  if (as_whole.ec == std::errc() && as_whole.ptr == end) return whole;
  double number = 0;
  const auto as_number = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (as_number.ec == std::errc() && as_number.ptr == end &&
      text.find_first_not_of("-.0123456789") == std::string::npos)
    return number;
  return text;
}

/// Below zero: by so much more than the card has.
std::int64_t spare(const PlanReport& report) {
  return static_cast<std::int64_t>(report.gpu.memory) - static_cast<std::int64_t>(report.peak.device);
}

Json row_json(const Sweep& sweep, const SweepRow& row) {
  Json job = Json::object();
  for (std::size_t i = 0; i < std::min(sweep.axes.size(), row.values.size()); ++i) {
    job[underscored(sweep.axes[i])] = typed(row.values[i]);
  }
  Json json{{"job", job}};
  const PlanReport* report = row.result ? &*row.result : nullptr;
  const auto put = [&](const char* name, const auto& value) {
    json[name] = report ? Json(value(*report)) : Json(nullptr);
  };
  put("fits", [](const PlanReport& r) { return r.fits(); });
  put("active_bytes", [](const PlanReport& r) { return r.peak.active; });
  put("reserved_bytes", [](const PlanReport& r) { return r.peak.reserved; });
  put("device_bytes", [](const PlanReport& r) { return r.peak.device; });
  put("memory_bytes", [](const PlanReport& r) { return r.gpu.memory; });
  put("spare_bytes", [](const PlanReport& r) { return spare(r); });
  put("step", [](const PlanReport& r) { return or_null(r.peak.step); });
  put("phase", [](const PlanReport& r) { return text_or_null(r.peak.phase); });
  put("module", [](const PlanReport& r) { return text_or_null(r.peak.module); });
  put("alloc_retries", [](const PlanReport& r) { return r.alloc_retries; });
  json["error"] = report ? Json(nullptr) : Json(row.error);
  return json;
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + "\"";
}

std::string line(const std::vector<std::string>& cells) {
  std::string text;
  for (const std::string& cell : cells) text += (&cell == &cells.front() ? "" : ",") + quoted(cell);
  return text + "\n";
}

}  // namespace

std::string to_csv(const Sweep& sweep) {
  std::vector<std::string> titles;
  for (const std::string& axis : sweep.axes) titles.push_back(underscored(axis));
  titles.insert(titles.end(), {"fits", "active_bytes", "reserved_bytes", "device_bytes", "memory_bytes", "spare_bytes",
                               "step", "phase", "module", "alloc_retries", "error"});
  std::string text = line(titles);
  for (const SweepRow& row : sweep.rows) {
    std::vector<std::string> cells = row.values;
    cells.resize(sweep.axes.size());
    if (row.result) {
      const AttributedPeak& peak = row.result->peak;
      cells.insert(cells.end(),
                   {row.result->fits() ? "true" : "false", std::to_string(peak.active), std::to_string(peak.reserved),
                    std::to_string(peak.device), std::to_string(row.result->gpu.memory),
                    std::to_string(spare(*row.result)), peak.step ? std::to_string(*peak.step) : "", peak.phase,
                    peak.module, std::to_string(row.result->alloc_retries), ""});
    } else {
      cells.insert(cells.end(), {"", "", "", "", "", "", "", "", "", "", row.error});
    }
    text += line(cells);
  }
  return text;
}

std::string to_json(const Sweep& sweep, JsonForm form) {
  Json json{{"version", 1}, {"command", "sweep"}, {"model", sweep.model}, {"gpu", gpu_json(sweep.gpu)}};
  json["axes"] = Json::array();
  for (const std::string& axis : sweep.axes) json["axes"].push_back(underscored(axis));
  json["rows"] = Json::array();
  for (const SweepRow& row : sweep.rows) json["rows"].push_back(row_json(sweep, row));
  return dumped(json, form);
}

}  // namespace plimsoll::report
