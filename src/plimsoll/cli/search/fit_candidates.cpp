#include "plimsoll/cli/search/fit_candidates.h"

#include <memory>
#include <vector>

#include "plimsoll/base/errors.h"
#include "plimsoll/job/check.h"
#include "plimsoll/job/fields.h"

namespace plimsoll::cli {
namespace {

constexpr std::int64_t kGpusOfNode = 8;

std::int64_t usual_limit(Search search) {
  return search == Search::kBatch ? 65'536 : search == Search::kSeqLen ? 16'777'216 : 16'384;
}

std::string text(std::int64_t number) { return std::to_string(number); }

/// The message of job::check, or "" if it accepts the job.
std::string complaint(const job::Job& job, const architecture::Architecture& model) {
  try {
    job::check(job, model);
    return "";
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

void check_limit(std::int64_t limit, std::int64_t multiple) {
  if (limit >= multiple) return;
  throw InvalidArgument("--limit " + text(limit) + " is below the first value, " + text(multiple) +
                        ": give a larger --limit or a smaller --multiple");
}

/// 1 to 8, then 16, 24, …; or multiples of one number.
FitField gpus(const FitRange& range, const job::Job& job, const architecture::Architecture& model) {
  const std::int64_t limit = range.limit.value_or(usual_limit(Search::kGpus));
  if (limit > job::kMostGpus)
    throw InvalidArgument("--limit must be at most " + text(job::kMostGpus) + " GPUs, found " + text(limit));
  const std::int64_t multiple = range.multiple.value_or(1);
  check_limit(limit, multiple);
  auto values = std::make_shared<std::vector<std::int64_t>>();
  std::string last_complaint;
  bool skipped = false;
  for (std::int64_t value = multiple; value <= limit;
       value += range.multiple || value < kGpusOfNode ? multiple : kGpusOfNode) {
    const std::string wrong = complaint(job_with(job, "gpus", value), model);
    if (wrong.empty()) {
      values->push_back(value);
    } else {
      skipped = true;
      last_complaint = wrong;
    }
  }
  if (values->empty())
    throw InvalidArgument("no number of GPUs up to " + text(limit) + " is possible: " + last_complaint);
  FitField field{.name = "gpus",
                 .candidates = {static_cast<std::int64_t>(values->size()),
                                [values](std::int64_t place) { return values->at(static_cast<std::size_t>(place)); }},
                 .note = ""};
  const std::string last = text(values->back());
  if (range.multiple) {
    field.note = "Searched: multiples of " + text(multiple) + " GPUs up to " + last;
  } else if (limit <= kGpusOfNode) {
    field.note = "Searched: up to " + last + " GPUs";
  } else {
    field.note =
        "Searched: 1 to " + text(kGpusOfNode) + " GPUs, then multiples of " + text(kGpusOfNode) + " up to " + last;
  }
  field.note += skipped ? ", except numbers that the job's other settings exclude." : ".";
  return field;
}

/// Multiples of a number, up to the last that job::check accepts.
FitField multiples(const FitRange& range, const job::Job& job, const architecture::Architecture& model) {
  const bool is_sequence = range.search == Search::kSeqLen;
  const std::int64_t multiple = range.multiple.value_or(is_sequence ? 128 : 1);
  const std::int64_t limit = range.limit.value_or(usual_limit(range.search));
  check_limit(limit, multiple);
  FitField field{.name = searched_field(range.search),
                 .candidates = {limit / multiple, [multiple](std::int64_t place) { return (place + 1) * multiple; }},
                 .note = ""};
  const auto complaint_at = [&](std::int64_t place) {
    return complaint(job_with(job, field.name, field.candidates.value(place)), model);
  };
  const std::string at_first = complaint_at(0);
  if (!at_first.empty()) throw InvalidArgument(at_first);
  const std::string at_last = complaint_at(field.candidates.count - 1);
  if (!at_last.empty()) {
    std::int64_t good = 0;
    std::int64_t bad = field.candidates.count - 1;
    while (bad - good > 1) {
      const std::int64_t middle = good + (bad - good) / 2;
      (complaint_at(middle).empty() ? good : bad) = middle;
    }
    field.candidates.count = bad;
    field.note = "The largest possible value is " + text(field.candidates.value(good)) + ": " + complaint_at(bad) + ".";
  }
  if (multiple > 1)
    field.note += (field.note.empty() ? "" : " ") + ("Only multiples of " + text(multiple) + " were tried.");
  return field;
}

}  // namespace

std::string searched_field(Search search) {
  return search == Search::kBatch ? "batch" : search == Search::kSeqLen ? "seq-len" : "gpus";
}

job::Job job_with(const job::Job& job, const std::string& field, std::int64_t value) {
  job::Job changed = job;
  job::find_field(field).set(changed, text(value));
  return changed;
}

FitField fit_field(const FitRange& range, const job::Job& job, const architecture::Architecture& model) {
  return range.search == Search::kGpus ? gpus(range, job, model) : multiples(range, job, model);
}

}  // namespace plimsoll::cli
