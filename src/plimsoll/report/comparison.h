#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/report/report.h"
#include "plimsoll/report/text/options.h"

/// Two reports side by side: the settings and the memory that differ.
namespace plimsoll::report {

struct NamedReport {
  std::string name;  ///< Its source: the file.
  Report report;
};

/// A value of both reports, or of one only.
struct BytesChange {
  std::string name;
  std::optional<Bytes> a;
  std::optional<Bytes> b;

  /// b less a; an absent value counts as 0.
  std::int64_t difference() const { return static_cast<std::int64_t>(b.value_or(0) - a.value_or(0)); }
};

struct SettingChange {
  std::string name;
  JobValue a;
  JobValue b;
};

struct Comparison {
  NamedReport a;
  NamedReport b;
  std::optional<std::vector<SettingChange>> settings;  ///< Those that differ, if both reports are plans.
  std::vector<BytesChange> books;                      ///< active, reserved, device
  /// At the peak, the largest changes first; absent if one report does not know them.
  std::optional<std::vector<BytesChange>> categories;
  std::vector<BytesChange> phases;  ///< Active peaks, the highest of all steps; in the order of a step.
  /// At the peak, those that differ, in the order of a's, then of b's; absent if one report does not know them.
  std::optional<std::vector<BytesChange>> modules;
};

Comparison compare(NamedReport a, NamedReport b);

std::string to_text(const Comparison& comparison, const TextOptions& options = {});

}  // namespace plimsoll::report
