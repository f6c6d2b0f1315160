#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/report/attribution.h"
#include "plimsoll/report/text/table.h"

/// What `plimsoll run` saw of a script, as plain values, and its two renderings: text for people and JSON for programs.
namespace plimsoll::report {

/// A line of the user's code. `line` 0: not known.
struct CodeLine {
  std::string file;
  int line = 0;
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

/// One optimizer step, or what came before the first or after the last one (`step` empty).
struct StepPeaks {
  std::optional<std::int64_t> step;
  Bytes active_peak = 0;
  Bytes allocated_peak = 0;
  Bytes reserved_peak = 0;
  std::vector<std::pair<std::string, PhasePeaks>> phases = {};  ///< in the order of the record

  bool same_peaks(const StepPeaks& other) const;
};

/// The device book by reason, at the moment of its peak: the parts add up to it.
struct DeviceParts {
  Bytes segments = 0;
  Bytes context = 0;
  Bytes nccl = 0;
  Bytes handles = 0;
};

/// The three books at their highest: active (tensors), reserved (segments), device (what nvidia-smi would show).
struct Peak {
  Bytes active = 0;
  Bytes allocated = 0;
  Bytes reserved = 0;
  Bytes device = 0;
  std::uint64_t segments = 0;
  std::optional<std::int64_t> step;  ///< where active was highest
  std::string phase;
  DeviceParts device_parts;
};

/// The three books at their highest, with what was there when active was. Where that is not known, `module` and `stage`
/// are empty too.
struct AttributedPeak : Peak {
  std::string module;                     ///< The FSDP module whose stage it was; "" for none.
  std::string stage;                      ///< What it was doing.
  std::vector<CategoryBytes> categories;  ///< Sum to `active`. Largest first.
};

struct OutOfMemory {
  Bytes requested = 0;
  Bytes device_free = 0;
  Bytes device_total = 0;
  Bytes active = 0;
  Bytes reserved = 0;
  std::optional<std::int64_t> step;
  std::string phase;
  CodeLine where;
  std::string message;
  std::vector<LiveAllocations> alive;
  DeviceParts device_parts;  ///< what the device held at that moment
};

/// A line that read values back from the device. They were zeros.
struct ReadBack {
  CodeLine where;
  std::uint64_t count = 0;
  Bytes bytes = 0;
  std::string op;  ///< empty: not known
  bool decided_shape = false;
};

struct ScriptError {
  std::string type;
  std::string message;
};

struct Gpu {
  std::string name;
  std::string device_name;
  Bytes memory = 0;
  int compute_major = 0;
  int compute_minor = 0;
  int multiprocessors = 0;
};

struct OtherDevice {
  int device = 0;
  Bytes reserved_peak = 0;
};

struct RunReport {
  Gpu gpu;
  int gpus_per_node = 1;
  int world_size = 1;
  int rank = 0;
  bool recorded = false;  ///< a process left a record; without one nothing below is known but how the script ended
  int processes = 0;      ///< those that used a GPU

  std::string script;
  std::string torch;
  std::string python;
  int device = 0;
  bool complete = false;  ///< the record was written at the end of the script, not after one of its steps
  AttributedPeak peak;
  std::optional<StepPeaks> before_steps;  ///< what came before the first step
  std::vector<StepPeaks> steps;
  std::uint64_t finished_steps = 0;      ///< the last of `steps` may have ended early
  std::optional<StepPeaks> after_steps;  ///< what came after the last finished one
  std::vector<ModuleRow> modules;        ///< in natural order, parents before children
  std::vector<PeakCause> causes;         ///< largest first; sum to peak.active
  std::string attribution;               ///< why categories, modules and causes are not known, as a sentence
  std::vector<LiveAllocations> top;
  Bytes top_total = 0;  ///< active bytes at the moment that `top` describes
  Bytes host_pinned = 0;
  std::uint64_t read_backs = 0;
  std::vector<ReadBack> read_back_lines;
  std::vector<std::string> unpretended;
  std::uint64_t ooms_handled = 0;
  std::uint64_t alloc_retries = 0;   ///< how often the caching allocator gave its cached segments back to find room
  std::vector<std::string> defects;  ///< parts of the observer that failed, in its own words
  std::optional<OutOfMemory> oom;
  std::optional<ScriptError> error;
  int exit_code = 0;          ///< the script's; 128 + n where signal n ended it
  std::optional<int> signal;  ///< that ended it
  double seconds = 0;
  bool stopped_after_steps = false;
  std::vector<OtherDevice> other_devices;

  /// True: memory ran out, and that ended the work. An out-of-memory error that the script survives is not in `oom` but
  /// counted in `ooms_handled`.
  bool out_of_memory() const { return oom.has_value(); }
  /// Whether the categories of the peak are known, and with them modules and causes. A peak without tensors has none.
  bool is_attributed() const { return !peak.categories.empty(); }
  /// Empty where nothing is known, because the script ended before it used the GPU and not by its own will.
  std::optional<bool> fits() const;
};

struct TextOptions {
  Colour colour = Colour::kNever;
  std::size_t top = 10;   ///< lines of code to list
  std::size_t depth = 2;  ///< modules of so many parts of a path: "layers.0" has two
  bool explain = false;   ///< the causes of the peak too
};

/// The report for a terminal: the verdict first, then the three books, the peak by category, steps, modules, causes
/// where they are wanted, and lines of code. Amounts in IEC units.
std::string to_text(const RunReport& report, const TextOptions& options = {});

/// The document of `--json`: `{"version": 1, "fits": …, …}`, amounts in bytes, ends with a line feed.
std::string to_json(const RunReport& report);

}  // namespace plimsoll::report
