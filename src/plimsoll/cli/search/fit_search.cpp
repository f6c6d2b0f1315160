#include "plimsoll/cli/search/fit_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "plimsoll/base/errors.h"
#include "plimsoll/job/check.h"
#include "plimsoll/job/fields.h"
#include "plimsoll/report/verdict.h"

namespace plimsoll::cli {
namespace {

using report::Fit;
using report::Report;

/// More would be wasted: most would lie beyond the limit, and jobs that do not fit take the longest.
constexpr std::size_t kMostAtOnce = 4;

/// The first place for which `stops` is true; `count` if there is none. REQUIRES: it stays true from there on.
template <class Predicate>
std::int64_t first_place(std::int64_t count, Predicate stops) {
  std::int64_t first = 0;
  while (first < count) {
    const std::int64_t middle = first + (count - first) / 2;
    if (stops(middle)) {
      count = middle;
    } else {
      first = middle + 1;
    }
  }
  return first;
}

/// The report of a run. A failure names the value.
Report report_at(const std::string& what, std::int64_t value, PlanOutcome outcome) {
  outcome.error = "with --" + what + " " + std::to_string(value) + ": " + outcome.error;
  return report_or_throw(std::move(outcome));
}

/// Narrows the border between the places with one answer (below) and those with the other (above).
class BoundSearch {
 public:
  BoundSearch(const FitQuestion& question, Planning& planning, const OnProbe& on_probe)
      : question_(question),
        planning_(planning),
        on_probe_(on_probe),
        at_once_(static_cast<std::int64_t>(std::clamp<std::size_t>(question.parallel, 1, kMostAtOnce))),
        above_(question.candidates.count) {
    fit_.what = question.what;
    fit_.direction = question.direction;
  }

  Fit run() {
    double_up();
    bisect();
    return answer();
  }

 private:
  bool is_maximum() const { return question_.direction == Fit::Direction::kMaximize; }

  void double_up() {
    const Candidates& candidates = question_.candidates;
    std::int64_t next = 0;
    while (above_ == candidates.count && next < candidates.count) {
      std::vector<std::int64_t> places;
      while (next < candidates.count && static_cast<std::int64_t>(places.size()) < at_once_) {
        places.push_back(next);
        if (next == candidates.count - 1) {
          next = candidates.count;
        } else {
          next = std::min(candidates.first_from(2 * candidates.value(next)), candidates.count - 1);
        }
      }
      probe(places);
    }
  }

  void bisect() {
    while (above_ - below_ > 1) {
      const std::int64_t count = std::min(at_once_, above_ - below_ - 1);
      std::vector<std::int64_t> places;
      for (std::int64_t i = 1; i <= count; ++i) places.push_back(below_ + (above_ - below_) * i / (count + 1));
      probe(places);
    }
  }

  /// REQUIRES: ascending, between `below_` and `above_`.
  void probe(const std::vector<std::int64_t>& places) {
    std::vector<PlanRequest> requests;
    for (const std::int64_t place : places) requests.push_back(question_.request(question_.candidates.value(place)));
    if (on_probe_) {
      on_probe_(fit_, question_.candidates.value(places.front()), question_.candidates.value(places.back()));
    }
    std::vector<PlanOutcome> outcomes = planning_.run(requests);
    bool met_border = false;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::int64_t value = question_.candidates.value(places[i]);
      Report report = report_at(question_.what, value, std::move(outcomes.at(i)));
      report.verdict = report::verdict_of(report, question_.reserve);
      const bool fits = report.fits() == true;
      fit_.probes.push_back({value, fits});
      if (met_border) continue;
      met_border = fits != is_maximum();
      (met_border ? above_ : below_) = places[i];
      (met_border ? above_report_ : below_report_) = std::move(report);
    }
  }

  Fit answer() {
    const auto value_of = [&](std::int64_t place) -> std::optional<std::int64_t> {
      if (place < 0 || place >= question_.candidates.count) return std::nullopt;
      return question_.candidates.value(place);
    };
    fit_.limit = value_of(is_maximum() ? below_ : above_);
    fit_.beyond = value_of(is_maximum() ? above_ : below_);
    fit_.at_limit = std::move(is_maximum() ? below_report_ : above_report_);
    fit_.at_beyond = std::move(is_maximum() ? above_report_ : below_report_);
    return std::move(fit_);
  }

  const FitQuestion& question_;
  Planning& planning_;
  const OnProbe& on_probe_;
  std::int64_t at_once_;
  std::int64_t below_ = -1;
  std::int64_t above_;
  std::optional<Report> below_report_;
  std::optional<Report> above_report_;
  Fit fit_;
};

constexpr std::int64_t kGpusOfNode = 8;

std::int64_t usual_limit(Search search) {
  return search == Search::kBatch ? 65'536 : search == Search::kSeqLen ? 16'777'216 : 16'384;
}

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
  throw InvalidArgument(fmt::format(
      "--limit {} is below the first value, {}: give a larger --limit or a smaller --multiple", limit, multiple));
}

/// 1 to 8, then 16, 24, …; or multiples of one number.
FitField gpus(const FitRange& range, const job::Job& job, const architecture::Architecture& model) {
  const std::int64_t limit = range.limit.value_or(usual_limit(Search::kGpus));
  if (limit > job::kMostGpus)
    throw InvalidArgument(fmt::format("--limit must be at most {} GPUs, found {}", job::kMostGpus, limit));
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
    throw InvalidArgument(fmt::format("no number of GPUs up to {} is possible: {}", limit, last_complaint));
  FitField field{.name = "gpus",
                 .candidates = {static_cast<std::int64_t>(values->size()),
                                [values](std::int64_t place) { return values->at(static_cast<std::size_t>(place)); }},
                 .note = "",
                 .step = range.multiple.value_or(limit > kGpusOfNode ? kGpusOfNode : 1)};
  if (range.multiple) {
    field.note = fmt::format("Searched: multiples of {} GPUs up to {}", multiple, values->back());
  } else if (limit <= kGpusOfNode) {
    field.note = fmt::format("Searched: up to {} GPUs", values->back());
  } else {
    field.note = fmt::format("Searched: 1 to {0} GPUs, then multiples of {0} up to {1}", kGpusOfNode, values->back());
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
                 .note = "",
                 .step = multiple};
  const auto complaint_at = [&](std::int64_t place) {
    return complaint(job_with(job, field.name, field.candidates.value(place)), model);
  };
  const std::string at_first = complaint_at(0);
  if (!at_first.empty()) throw InvalidArgument(at_first);
  const std::int64_t bad =
      first_place(field.candidates.count, [&](std::int64_t place) { return !complaint_at(place).empty(); });
  if (bad < field.candidates.count) {
    field.candidates.count = bad;
    field.note =
        fmt::format("The largest possible value is {}: {}.", field.candidates.value(bad - 1), complaint_at(bad));
  }
  if (multiple > 1)
    field.note += (field.note.empty() ? "" : " ") + fmt::format("Only multiples of {} were tried.", multiple);
  return field;
}

}  // namespace

std::int64_t Candidates::first_from(std::int64_t least) const {
  return first_place(count, [&](std::int64_t place) { return value(place) >= least; });
}

Fit find_limit(const FitQuestion& question, Planning& planning, const OnProbe& on_probe) {
  return BoundSearch(question, planning, on_probe).run();
}

std::string searched_field(Search search) {
  return search == Search::kBatch ? "batch" : search == Search::kSeqLen ? "seq-len" : "gpus";
}

job::Job job_with(const job::Job& job, const std::string& field, std::int64_t value) {
  job::Job changed = job;
  job::find_field(field).set(changed, std::to_string(value));
  return changed;
}

FitField fit_field(const FitRange& range, const job::Job& job, const architecture::Architecture& model) {
  return range.search == Search::kGpus ? gpus(range, job, model) : multiples(range, job, model);
}

}  // namespace plimsoll::cli
