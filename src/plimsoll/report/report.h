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

/// The report: how much GPU memory a training job needs, when and why. All commands share it. fields.h gives each value
/// its JSON name, document.h writes and reads the document, text/ renders it for people.
namespace plimsoll::report {

struct Gpu {
  std::string name;
  std::string device_name;  ///< As CUDA reports it.
  Bytes memory = 0;
  std::string compute_capability = {};  ///< "9.0"
  std::uint64_t multiprocessors = 0;
};

/// A line of the user's code.
struct CodeLine {
  std::string file;
  std::optional<std::int64_t> line;
  std::string function;
  std::string code;
};

/// Live allocations that one line of code made.
struct LiveAllocations {
  Bytes bytes = 0;
  std::uint64_t count = 0;
  CodeLine where;
};

struct PhasePeaks {
  Bytes active_peak = 0;
  Bytes allocated_peak = 0;
  Bytes reserved_peak = 0;
  Bytes active_end = 0;
  Bytes reserved_end = 0;

  bool operator==(const PhasePeaks&) const = default;
};

/// One optimizer step. `step` is empty for the time before the first step and after the last one.
struct StepPeaks {
  std::optional<std::int64_t> step;
  Bytes active_peak = 0;
  Bytes allocated_peak = 0;
  Bytes reserved_peak = 0;
  std::vector<std::pair<std::string, PhasePeaks>> phases = {};  ///< In the order in which they first came.

  bool same_peaks(const StepPeaks& other) const;
};

/// The device book by reason at the moment of its peak: the parts sum to it.
struct DeviceParts {
  Bytes segments = 0;
  Bytes context = 0;
  Bytes nccl = 0;
  Bytes handles = 0;

  /// The parts that no allocator counts: the GPU's profile estimates them.
  Bytes estimated() const { return context + nccl + handles; }
};

/// The three books, each at its own highest: active (tensors), reserved (segments), device (as nvidia-smi shows it).
struct Peak {
  Bytes active = 0;
  Bytes allocated = 0;
  Bytes reserved = 0;
  Bytes device = 0;
  std::uint64_t segments = 0;
  std::optional<std::int64_t> step;  ///< When active was highest.
  std::string phase;
  std::string module;                     ///< The FSDP module that was at work then.
  std::string stage;                      ///< The stage of that module.
  std::vector<CategoryBytes> categories;  ///< Largest first; they sum to `active`. Empty if they are not known.
  DeviceParts device_parts;
};

/// Where memory ran out.
struct OutOfMemory {
  Bytes requested = 0;  ///< 0: not known. A vendor library or the driver does not report it.
  Bytes device_free = 0;
  Bytes device_total = 0;
  Bytes active = 0;
  Bytes reserved = 0;
  std::optional<std::int64_t> step;
  std::string phase;  ///< "" while the model was built.
  std::string module;
  CodeLine where;
  std::string message;
  std::optional<DeviceParts> device_parts;  ///< The device book at that moment.
  std::vector<LiveAllocations> alive;       ///< By line of code, largest first.
};

/// A line that read values from the device. The values were zeros.
struct ReadBack {
  CodeLine where;
  std::uint64_t count = 0;
  Bytes bytes = 0;
  std::string op;
  bool decided_shape = false;
};

struct ScriptError {
  std::string type;
  std::string message;
};

struct OtherDevice {
  std::int64_t device = 0;
  Bytes reserved_peak = 0;
};

/// A setting of a job by the name of its flag. Hyphens and underscores are the same; documents write underscores.
using JobValue = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string>;
using JobValues = std::vector<std::pair<std::string, JobValue>>;

/// The value of a setting; null if `job` has no setting of that name.
JobValue job_value(const JobValues& job, std::string_view name);

/// As a person reads it: "none", "yes", "8192", "0.5", "bf16".
std::string shown(const JobValue& value);

/// The same name with underscores.
std::string underscored(std::string name);

struct Model {
  std::string name;    ///< As the user wrote it: a preset, or the path of a config.
  std::string family;  ///< "llama", "qwen3_moe", …
  std::uint64_t parameters = 0;
  std::uint64_t active_parameters = 0;  ///< Of one token: fewer than all if the model has experts.
  std::uint64_t blocks = 0;
};

/// The subject of `plan`: a job that plimsoll ran itself.
struct PlannedJob {
  Model model;
  JobValues job;
  Bytes host = 0;                   ///< The most that the CPU held, pinned or not.
  std::uint64_t ops = 0;            ///< Kernels, copies and collectives that were launched.
  std::vector<std::string> notes;   ///< Assumptions: balanced routing, …
  double planner_step_seconds = 0;  ///< Time that plimsoll took for the steps, on this machine.
};

/// The subject of `run`: a script.
struct ScriptRun {
  std::string script;
  std::string python;
  std::int64_t gpus_per_node = 1;
  std::int64_t world_size = 1;
  std::int64_t rank = 0;
  std::uint64_t processes = 0;  ///< Those that used a GPU.
  std::int64_t device = 0;
  bool complete = false;             ///< The record was written at the end of the script, not after one of its steps.
  std::uint64_t finished_steps = 0;  ///< The last of `Report::steps` may have ended early.
  bool stopped_after_steps = false;
  std::optional<ScriptError> error;
  std::int64_t exit_code = 0;          ///< The script's; 128 + n if signal n ended it.
  std::optional<std::int64_t> signal;  ///< The signal that ended it.
  std::uint64_t ooms_handled = 0;      ///< Out-of-memory errors that the script survived.
  std::vector<LiveAllocations> top;    ///< Live allocations at the peak, by line of code.
  Bytes top_total = 0;                 ///< Active bytes at the moment that `top` describes.
  std::uint64_t read_backs = 0;
  std::vector<ReadBack> read_back_lines;
  std::vector<std::string> unpretended;
  std::vector<std::string> defects;  ///< Failures of the observer itself.
  std::vector<OtherDevice> other_devices;
};

/// Why a report has its verdict.
enum class Outcome : std::uint8_t {
  kFits,
  kOutOfMemory,
  kTooLittleLeft,  ///< It ran to its end, and left less than the reserve.
  kScriptFailed,   ///< For a reason other than memory.
  kStopped,        ///< A signal ended the script.
  kNoVerdict,      ///< The script used no GPU.
  kNotRun,
};

/// verdict.h computes it.
struct Verdict {
  std::optional<bool> fits;
  Outcome outcome = Outcome::kNotRun;
  /// It fits, and less is left than the estimates' share, or the caching allocator had to flush its cache.
  bool only_just = false;
  std::optional<std::int64_t> spare =
      {};               ///< Memory that the device book leaves; below zero: by which it exceeds the card.
  Bytes estimated = 0;  ///< The part of the device book that the GPU's profile estimates.
  Bytes reserve = 0;    ///< Memory that the user holds back.
  std::string sentence = {};
};

struct Report {
  std::variant<PlannedJob, ScriptRun> subject;
  Verdict verdict;
  Gpu gpu;
  std::string torch;
  Peak peak;
  /// For a planned job that ran out of memory, all values but `oom`, `gpu` and `alloc_retries` are from a second run on
  /// a card that is large enough. A script is not run again.
  std::optional<OutOfMemory> oom;
  std::optional<StepPeaks> before_steps;
  std::vector<StepPeaks> steps;
  std::optional<StepPeaks> after_steps;
  std::vector<ModuleRow> modules;   ///< In natural order, parents before children. Empty if not known.
  std::vector<PeakCause> causes;    ///< Largest first; they sum to peak.active. Empty if not known.
  std::string attribution;          ///< Why categories, modules and causes are not known, as a sentence.
  Bytes host_pinned = 0;            ///< The most pinned memory.
  std::uint64_t alloc_retries = 0;  ///< How often the caching allocator flushed its cache to find room.
  double seconds = 0;               ///< Of everything, on this machine.

  const PlannedJob* planned() const { return std::get_if<PlannedJob>(&subject); }
  const ScriptRun* script() const { return std::get_if<ScriptRun>(&subject); }
  PlannedJob& as_planned() { return std::get<PlannedJob>(subject); }
  ScriptRun& as_script() { return std::get<ScriptRun>(subject); }

  std::optional<bool> fits() const { return verdict.fits; }
  /// A peak without tensors has no categories either.
  bool is_attributed() const { return !peak.categories.empty(); }
  /// A planned job that was too large for the largest card that plimsoll tried: the peak is a lower bound.
  bool is_cut_short() const { return planned() != nullptr && oom && causes.empty(); }
};

}  // namespace plimsoll::report
