#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/report/report.h"
#include "plimsoll/report/text/amounts.h"
#include "plimsoll/report/text/options.h"

/// The report as text, and the parts of it that commands share. A table or a list stands below its heading, after an
/// empty line; without rows its text is "".
namespace plimsoll::report {

/// The report for a terminal. The verdict comes first, then the subject. The full report has at most 120 columns where
/// names allow: the three books, the peak by category, steps, modules, causes if wanted, lines of code and notes.
std::string to_text(const Report& report, const TextOptions& options = {});

/// The report in at most 20 lines of 80 columns: the verdict, the subject, a bar for each part of the card, and the
/// place of the peak. REQUIRES: the subject used a GPU.
std::string short_text(const Report& report, const TextOptions& options);

/// One change to a job, and its result.
struct Saving {
  std::string change;            ///< As the user writes it: "--checkpoint full".
  std::optional<Report> result;  ///< Of the changed job.
  std::string failure;           ///< Why there is no result.
};

/// The document of `plimsoll explain`.
struct Explanation {
  Report report;
  std::vector<Saving> changes;
};

/// The peak cause by cause, and the memory that each single change saves on the device book, the largest saving first.
/// The full text also has the causes below 1 % of the peak, all books after each change, and the changes that save
/// nothing.
std::string explanation_text(const Report& report, const std::vector<Saving>& savings, const TextOptions& options = {});

/// The subject of a report: for a job the model, the GPUs and the settings that most people change; for a script its
/// name, rank and steps. Ends with a line feed.
std::string subject_lines(const Report& report);

/// The same in a few words: "llama3-8b, 8 GPUs, batch 1, sequence 8192, checkpoint none, adamw".
std::string subject_line(const Report& report);

/// When the peak was: "step 1, backward, module layers.31 (pre-backward)", "after the last step".
std::string peak_moment_in_full(const Report& report);

/// "step 1, backward, layers.31"
std::string peak_moment(const Peak& peak);

/// The three books at their highest, as parts of the card, and the parts of the device book.
std::string books_table(const Peak& peak, Bytes card, const Amounts& amounts);

/// The peak by category; `when` goes into the heading. Only the heading if no categories are known.
std::string peak_by_category(const Peak& peak, const std::string& when, const Amounts& amounts);

/// The parts of a module's path: 0 for the root, 2 for "layers.0".
std::size_t depth_of(const std::string& module);

/// The peak by module down to `depth`. The first of `categories`, which are the peak's, largest first, have their own
/// columns, as many as fit into 120 characters. Equal blocks share a row.
std::string module_table(const std::vector<ModuleRow>& modules, std::vector<CategoryBytes> categories,
                         std::size_t depth, const Amounts& amounts);

/// "8.00 MiB Temp of layers.0 and layers.1: gradients of activations, and temporaries (12 allocations)."
std::string sentence(const PeakCause& cause);

/// The causes of the peak. Shares are parts of `active`; `when` goes into the heading: "step 1, backward".
std::string cause_list(const std::vector<PeakCause>& causes, Bytes active, const std::string& when,
                       const Amounts& amounts);

/// One line of the table of steps: a step, or several consecutive ones.
struct StepRow {
  std::string label;  ///< "before", "0", "2-9", "after"
  Bytes active_peak = 0;
  Bytes reserved_peak = 0;
  std::map<std::string, Bytes> active_by_phase;
};

/// The rows for the steps of a report. Consecutive steps with the same peaks share a row. If more than `limit` rows are
/// left, those in the middle become one row with their highest values.
/// REQUIRES: limit >= 4.
std::vector<StepRow> step_rows(const Report& report, std::size_t limit = 20);

/// The phases that occur in `rows`: forward, backward, optimizer, other, then any others by name.
std::vector<std::string> phases_of(const std::vector<StepRow>& rows);

std::string step_table(const std::vector<StepRow>& rows, const Amounts& amounts);

}  // namespace plimsoll::report
