#include "plimsoll/cli/child_record.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "plimsoll/base/errors.h"
#include "plimsoll/report/document.h"

namespace plimsoll::cli {

namespace fs = std::filesystem;

Record parse_record(const std::string& text, const std::string& origin) {
  const auto json = report::parse_document(text, origin);
  const report::JsonValue document(json, origin);
  const auto main = document.find("main");
  return {.main = main && main->flag(), .report = report::report_record_from(document)};
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
      found.records.push_back(parse_record(text.str(), "the record " + file.filename().string()));
    } catch (const FormatError& problem) {
      found.complaints.emplace_back(problem.what());
    }
  }
  return found;
}

report::Report merge(const std::vector<Record>& records, const report::Report& base, const ChildExit& exit) {
  const auto highest = std::max_element(records.begin(), records.end(), [](const Record& a, const Record& b) {
    return a.report.peak.device < b.report.peak.device;
  });
  report::Report merged = highest == records.end() ? base : highest->report;
  merged.gpu = base.gpu;
  report::ScriptRun& run = merged.as_script();
  const report::ScriptRun& known = *base.script();
  run.processes = static_cast<std::uint64_t>(
      std::count_if(records.begin(), records.end(), [](const Record& r) { return r.report.peak.device > 0; }));
  for (const Record& record : records) {
    if (!merged.oom) merged.oom = record.report.oom;
    if (!record.main) continue;
    const report::ScriptRun& main = *record.report.script();
    run.error = main.error;
    run.script = main.script;
    run.stopped_after_steps = main.stopped_after_steps;
    merged.seconds = record.report.seconds;
  }
  if (run.script.empty()) run.script = known.script;
  run.gpus_per_node = known.gpus_per_node;
  run.world_size = known.world_size;
  run.rank = known.rank;
  run.exit_code = exit.exit_code;
  run.signal = exit.signal;
  return merged;
}

}  // namespace plimsoll::cli
