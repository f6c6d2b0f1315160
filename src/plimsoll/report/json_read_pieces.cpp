// Reads what json_pieces.cpp writes.
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "plimsoll/report/json_reader.h"

namespace plimsoll::report {
namespace {

/// "9.0"
void read_capability(const Fields& fields, Gpu& gpu) {
  const std::string text = fields.text("compute_capability");
  const char* end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, gpu.compute_major);
  if (major.ec == std::errc() && major.ptr != end && *major.ptr == '.') {
    const auto minor = std::from_chars(major.ptr + 1, end, gpu.compute_minor);
    if (minor.ec == std::errc() && minor.ptr == end && gpu.compute_major >= 0 && gpu.compute_minor >= 0) return;
  }
  fields.mismatch("compute_capability", "two numbers with a point between, as in \"9.0\"",
                  fields.value("compute_capability"));
}

ModuleRow read_module(const Fields& fields) {
  ModuleRow module;
  module.name = fields.text("name");
  module.type = fields.text("type");
  module.fsdp_unit = fields.flag("fsdp_unit");
  module.parameters = fields.whole("parameters");
  module.highest = fields.whole("highest_bytes");
  module.total = fields.whole("total_bytes");
  module.at_peak = read_categories(fields.object("at_peak"));
  return module;
}

PeakCause read_cause(const Fields& fields) {
  PeakCause cause;
  cause.bytes = fields.whole("bytes");
  cause.category = fields.text("category");
  cause.why = fields.text("why");
  fields.each("owners",
              [&](const Fields& owner) { cause.owners.emplace_back(owner.text("name"), owner.whole("bytes")); });
  if (fields.has("allocations")) cause.allocations = fields.whole("allocations");
  if (fields.has("one_per_shard")) cause.one_per_shard = fields.flag("one_per_shard");
  return cause;
}

}  // namespace

Gpu read_gpu(const Fields& fields) {
  Gpu gpu;
  gpu.name = fields.text("name");
  gpu.device_name = fields.text("device_name");
  gpu.memory = fields.whole("memory_bytes");
  read_capability(fields, gpu);
  const Bytes multiprocessors = fields.whole("multiprocessors");
  constexpr int kMost = std::numeric_limits<int>::max();
  if (multiprocessors > Bytes{kMost}) {
    fields.mismatch("multiprocessors", "at most " + std::to_string(kMost), fields.value("multiprocessors"));
  }
  gpu.multiprocessors = static_cast<int>(multiprocessors);
  return gpu;
}

Peak read_peak(const Fields& fields) {
  Peak peak;
  peak.active = fields.whole("active_bytes");
  peak.allocated = fields.whole("allocated_bytes");
  peak.reserved = fields.whole("reserved_bytes");
  peak.device = fields.whole("device_bytes");
  peak.segments = fields.whole("segments");
  peak.step = fields.integer_or_null("step");
  peak.phase = fields.text_or_null("phase");
  const Fields parts = fields.object("device_parts");
  peak.device_parts = {parts.whole("segments"), parts.whole("context"), parts.whole("nccl"), parts.whole("handles")};
  return peak;
}

std::vector<CategoryBytes> read_categories(const Fields& fields) {
  std::vector<CategoryBytes> categories;
  for (const std::string& name : fields.names()) categories.push_back({name, fields.whole(name.c_str())});
  return categories;
}

AttributedPeak read_attributed_peak(const Fields& fields) {
  AttributedPeak peak{read_peak(fields), {}, {}, {}};
  peak.module = fields.text_or_null("module");
  peak.stage = fields.text_or_null("stage");
  peak.categories = read_categories(fields.object("categories"));
  return peak;
}

StepPeaks read_step(const Fields& fields) {
  StepPeaks step;
  if (fields.has("step")) step.step = fields.integer("step");
  step.active_peak = fields.whole("active_peak_bytes");
  step.allocated_peak = fields.whole("allocated_peak_bytes");
  step.reserved_peak = fields.whole("reserved_peak_bytes");
  fields.each_named("phases", [&](const std::string& name, const Fields& phase) {
    step.phases.emplace_back(name, PhasePeaks{phase.whole("active_peak_bytes"), phase.whole("allocated_peak_bytes"),
                                              phase.whole("reserved_peak_bytes"), phase.whole("active_end_bytes"),
                                              phase.whole("reserved_end_bytes")});
  });
  return step;
}

std::vector<ModuleRow> read_modules(const Fields& document) {
  std::vector<ModuleRow> modules;
  document.each("modules", [&](const Fields& module) { modules.push_back(read_module(module)); });
  return modules;
}

std::vector<PeakCause> read_causes(const Fields& document) {
  std::vector<PeakCause> causes;
  document.each("causes", [&](const Fields& cause) { causes.push_back(read_cause(cause)); });
  return causes;
}

}  // namespace plimsoll::report
