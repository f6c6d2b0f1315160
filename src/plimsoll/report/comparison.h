#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/report/plan_report.h"

/// Two reports side by side: what was set differently, and what that made of memory.
namespace plimsoll::report {

/// What reports of `plan` and of `run` have in common, and the plan where it is one.
struct ComparedReport {
  std::string name;     ///< Where it is from: the file.
  std::string command;  ///< "plan" or "run"
  std::optional<bool> fits;
  Gpu gpu;
  AttributedPeak peak;
  bool is_attributed = false;  ///< Whose the memory of the peak was is known: its categories, and `modules`.
  std::string attribution;     ///< Where it is not: why, if the document says.
  std::vector<ModuleRow> modules;
  std::optional<StepPeaks> before_steps;
  std::vector<StepPeaks> steps;
  std::optional<StepPeaks> after_steps;
  std::optional<PlanReport> plan;
};

ComparedReport compared(const PlanReport& report, const std::string& name);

/// Reads a document of `plan` or of `run`, which says no command. Throws FormatError as plan_report_from_json does.
ComparedReport compared_from_json(std::string_view text, const std::string& origin);

/// Something in both reports, or in one only.
struct BytesChange {
  std::string name;
  std::optional<Bytes> a;
  std::optional<Bytes> b;

  /// What b has more; absent counts as nothing.
  std::int64_t difference() const { return static_cast<std::int64_t>(b.value_or(0) - a.value_or(0)); }
};

struct SettingChange {
  std::string name;
  JobValue a;
  JobValue b;
};

struct Comparison {
  ComparedReport a;
  ComparedReport b;
  bool plans = false;                   ///< Both are: without that, settings are not known, and empty.
  bool attributed = false;              ///< Both are: without that, categories and modules are not known, and empty.
  std::vector<SettingChange> settings;  ///< Those that differ.
  std::vector<BytesChange> books;       ///< active, reserved, device
  std::vector<BytesChange> categories;  ///< At the peak; the largest changes first.
  std::vector<BytesChange> phases;      ///< Active peaks, the highest of all steps; in the order of a step.
  std::vector<BytesChange> modules;     ///< At the peak, those that differ, in the order of a's, then of b's.
};

Comparison compare(ComparedReport a, ComparedReport b);

std::string to_text(const Comparison& comparison, const PlanTextOptions& options = {});

/// `{"version": 1, "command": "compare", …}`; docs/json_schema.md.
std::string to_json(const Comparison& comparison, JsonForm form = JsonForm::kIndented);

}  // namespace plimsoll::report
