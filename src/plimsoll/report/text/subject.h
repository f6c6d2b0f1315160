#pragma once

#include <string>

#include "plimsoll/report/report.h"

namespace plimsoll::report {

/// The subject of a report: for a job the model, the GPUs and the settings that most people change; for a script its
/// name, rank and steps. Ends with a line feed.
std::string subject_lines(const Report& report);

/// The same in a few words: "llama3-8b, 8 GPUs, batch 1, sequence 8192, checkpoint none, adamw".
std::string subject_line(const Report& report);

/// When the peak was: "step 1, backward, module layers.31 (pre-backward)", "after the last step".
std::string peak_moment_in_full(const Report& report);

}  // namespace plimsoll::report
