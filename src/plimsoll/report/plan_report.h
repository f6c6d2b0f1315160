#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/report/attribution.h"
#include "plimsoll/report/json_form.h"
#include "plimsoll/report/run_report.h"
#include "plimsoll/report/text/amounts.h"
#include "plimsoll/report/text/table.h"

/// What `plimsoll plan` saw of a job, as plain values; its document, which is read back too, and its text.
namespace plimsoll::report {

/// A setting of a job, by the name that its flag has. Hyphens and underscores are the same; documents write
/// underscores.
using JobValue = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string>;
using JobValues = std::vector<std::pair<std::string, JobValue>>;

/// The value of a setting; null where there is none of that name.
JobValue job_value(const JobValues& job, std::string_view name);

/// As a person reads it: "none", "yes", "8192", "0.5", "bf16".
std::string shown(const JobValue& value);

struct PlanModel {
  std::string name;    ///< As it was asked for: a preset, or the config's path.
  std::string family;  ///< "llama", "qwen3_moe", …
  std::uint64_t parameters = 0;
  std::uint64_t active_parameters = 0;  ///< Of one token: less than all where there are experts.
  std::uint64_t blocks = 0;
};

/// Where memory ran out.
struct PlanOom {
  Bytes requested = 0;
  Bytes device_free = 0;
  Bytes device_total = 0;
  Bytes active = 0;
  Bytes reserved = 0;
  std::optional<std::int64_t> step;
  std::string phase = {};  ///< "" while the model was built.
  std::string module = {};
  std::string message = {};
};

struct PlanReport {
  Gpu gpu;
  PlanModel model;
  JobValues job;
  /// Where memory ran out, the job was run again on a card that is large enough, and all below is of that run.
  std::optional<PlanOom> oom;
  AttributedPeak peak;
  std::optional<StepPeaks> before_steps;
  std::vector<StepPeaks> steps;
  std::vector<ModuleRow> modules;  ///< In natural order, parents before children.
  std::vector<PeakCause> causes;   ///< Largest first; sum to peak.active.
  Bytes host = 0;                  ///< The most that the CPU held, pinned and not.
  Bytes host_pinned = 0;
  std::uint64_t ops = 0;  ///< Kernels, copies and collectives that were launched.
  std::uint64_t alloc_retries = 0;
  std::vector<std::string> notes;  ///< What a reader must know: balanced routing, …
  std::string torch;
  double step_seconds = 0;  ///< Of the steps alone, on this machine.
  double seconds = 0;       ///< Of everything, on this machine.

  bool fits() const { return !oom; }
  /// Even the largest card that was tried was too small: nothing is known of the peak but that it is higher.
  bool is_cut_short() const { return oom && causes.empty(); }
};

struct PlanTextOptions {
  Colour colour = Colour::kNever;
  std::size_t depth = 2;              ///< Modules of so many parts of a path: "layers.0" has two.
  std::optional<ByteUnit> unit = {};  ///< Absent: of each number the largest that fits.
  bool quiet = false;                 ///< The verdict and nothing else.
};

/// The report for a terminal, at most 120 columns where names allow: the verdict first, then what it is of, the three
/// books, the peak by category, steps, modules, host memory and notes.
std::string to_text(const PlanReport& report, const PlanTextOptions& options = {});

/// The document of `--json`: `{"version": 1, "command": "plan", "fits": …}`, amounts in bytes; docs/json_schema.md.
std::string to_json(const PlanReport& report, JsonForm form = JsonForm::kIndented);

/// Reads what `to_json` wrote: written again, it is the same text. Fields that it does not know are passed over, for
/// they may be added within a version. Throws FormatError that names `origin`, the field, what was expected and what
/// was found.
PlanReport plan_report_from_json(std::string_view text, const std::string& origin);

}  // namespace plimsoll::report
