#include "plimsoll/plan/run_job.h"

#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDAAllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/cuda/memory_snapshot.h>
#include <torch/version.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <utility>

#include "plimsoll/base/errors.h"
#include "plimsoll/fsdp/fsdp_module.h"
#include "plimsoll/job/check.h"
#include "plimsoll/job/fields.h"
#include "plimsoll/job/model.h"
#include "plimsoll/job/worker_protocol.h"
#include "plimsoll/ledger/log_file.h"
#include "plimsoll/nn/hooks/hooks.h"
#include "plimsoll/plan/trainer.h"
#include "plimsoll/pretend/model/control.h"
#include "plimsoll/report/text/amounts.h"
#include "plimsoll/report/verdict.h"
#include "plimsoll/tracker/attribution/attribution.h"
#include "plimsoll/tracker/fsdp_mem_tracker.h"

namespace plimsoll::plan {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

report::Model model_of(const job::Job& job, const architecture::Architecture& architecture) {
  const auto count = architecture::count_parameters(architecture);
  return {.name = job.model,
          .family = std::string(architecture::name(architecture.family)),
          .parameters = static_cast<std::uint64_t>(count.total),
          .active_parameters = static_cast<std::uint64_t>(count.active),
          .blocks = static_cast<std::uint64_t>(architecture.blocks)};
}

report::JobValues values_of(const job::Job& job) {
  report::JobValues values;
  for (const auto& field : job::fields()) values.emplace_back(field.key(), field.value(job));
  return values;
}

std::vector<std::string> notes_on(const job::Job& job, const architecture::Architecture& architecture) {
  std::vector<std::string> notes = architecture.notes;
  if (architecture.experts) {
    notes.emplace_back(
        "routing is taken as balanced: no token is dropped, and none is padded for, so that what the router decides "
        "does not change memory");
  }
  if (architecture.family == architecture::Family::kGPT2) notes.emplace_back("trained without dropout");
  if (!job::is_sharded(job) && job.param_dtype != job.master_dtype) {
    notes.emplace_back("one GPU: nothing is sharded, and the model runs under autocast");
  }
  return notes;
}

/// The state when the allocator ran out of memory. The allocator reports it on the requesting thread.
struct Refusal {
  Bytes requested = 0;
  Bytes device_total = 0;
  Bytes device_free = 0;
  Bytes active = 0;
  Bytes reserved = 0;
};

class RefusalWatch {
 public:
  RefusalWatch() {
    allocator::attachOutOfMemoryObserver(
        [last = last_](std::int64_t device, std::size_t requested, std::size_t total, std::size_t free) {
          const auto stats = allocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
          const auto current = [](const auto& stat) { return static_cast<Bytes>(stat[0].current); };
          *last = {requested, total, free, current(stats.active_bytes), current(stats.reserved_bytes)};
        });
  }
  const Refusal& last() const { return *last_; }

 private:
  std::shared_ptr<Refusal> last_ = std::make_shared<Refusal>();
};

/// A library that found no room says so in words of its own.
bool ran_out(const c10::Error& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  const std::string what = error.what();
  return pretend::control::memory(0).refusals > 0 &&
         (what.find("out of memory") != std::string::npos || what.find("ALLOC_FAILED") != std::string::npos);
}

report::OutOfMemory oom_of(const c10::Error& error, const Refusal& refusal, const PhaseMeter& meter) {
  const auto memory = pretend::control::memory(0);
  report::OutOfMemory oom;
  oom.requested = refusal.requested;
  oom.device_free = refusal.device_total == 0 ? memory.capacity - memory.used : refusal.device_free;
  oom.device_total = memory.capacity;
  oom.active = refusal.active;
  oom.reserved = refusal.reserved;
  oom.step = meter.step();
  if (oom.step) oom.phase = meter.phase();
  oom.message = report::first_line(error.what_without_backtrace());
  return oom;
}

/// The tracker names modules from their root on. nn::checkpoint_wrapper holds its module as `block`.
ModuleTree tree_of(Trainer& trainer) {
  ModuleTree tree{.modules = {}, .wrappers = {"block"}};
  const auto root = nn::class_name(*trainer.model());
  for (const auto& item : trainer.model()->named_modules("", /*include_self=*/true)) {
    tree.modules.push_back({.name = item.key().empty() ? root : root + "." + item.key(),
                            .type = nn::class_name(*item.value()),
                            .fsdp_unit = fsdp::FSDPModule::is_fsdp_module(*item.value()),
                            .parameters = static_cast<std::uint64_t>(trainer.parameters_of().at(item.key()))});
  }
  return tree;
}

report::DeviceParts parts_of(const pretend::MemoryCounters& memory) {
  const auto of = [&](pretend::Reason reason) { return memory.peak_by[static_cast<std::size_t>(reason)]; };
  return {.segments = of(pretend::Reason::kSegments),
          .context = of(pretend::Reason::kContext),
          .nccl = of(pretend::Reason::kNccl),
          .handles = of(pretend::Reason::kHandles)};
}

void write_snapshot(const std::filesystem::path& file) {
  const auto pickled = torch::cuda::_memory_snapshot_pickled();
  errno = 0;
  std::ofstream stream(file, std::ios::binary);
  stream << pickled;
  stream.close();
  if (!stream) throw SystemError("cannot write the snapshot " + file.string());
}

/// One run, and what is seen of it.
class Run {
 public:
  explicit Run(const job::PlanRequest& request)
      : request_(request), job_(request.job), architecture_(job::find_model(request.job.model)) {
    job::check(job_, architecture_);
    job_.seq_len = job::sequence(job_, architecture_);
    report_.gpu = job::gpu_of(pretend::control::profile());
    planned_.model = model_of(job_, architecture_);
    planned_.job = values_of(job_);
    planned_.notes = notes_on(job_, architecture_);
    report_.torch = TORCH_VERSION;
  }

  report::Report take() {
    const auto began = Clock::now();
    check_alloc_conf();
    c10::cuda::set_device(0);
    allocator::init(c10::cuda::device_count());
    if (request_.snapshot) torch::cuda::_record_memory_history("all", std::nullopt, "all");
    const RefusalWatch refusals;
    PhaseMeter meter;
    std::unique_ptr<Trainer> trainer;
    std::unique_ptr<MemTracker> tracker;
    try {
      trainer = std::make_unique<Trainer>(job_, architecture_);
      tracker = make_tracker(*trainer);
      const auto scope = tracker->enter();
      const auto first_step = Clock::now();
      trainer->run(meter);
      planned_.planner_step_seconds = seconds_since(first_step);
    } catch (const c10::Error& error) {
      if (!ran_out(error)) throw;
      report_.oom = oom_of(error, refusals.last(), meter);
    }
    meter.close();
    note_books(meter);
    if (tracker && !report_.oom) note_contents(*trainer, *tracker);
    if (request_.snapshot) write_snapshot(*request_.snapshot);
    if (request_.log) ledger::write_log(log_, *request_.log);
    report_.seconds = seconds_since(began);
    report_.subject = std::move(planned_);
    report_.verdict = report::verdict_of(report_);
    return std::move(report_);
  }

 private:
  /// torch reads the environment when its allocator is first asked for something.
  void check_alloc_conf() const {
    try {
      c10::CachingAllocator::AcceleratorAllocatorConfig::instance();
      allocator::CUDAAllocatorConfig::instance();
    } catch (const c10::Error& error) {
      refuse_alloc_conf(report::first_line(error.what_without_backtrace()));
    } catch (const std::exception& error) {  // std::stoull's, for what should be a number
      refuse_alloc_conf(std::string("a value has the wrong type (") + error.what() + ")");
    }
  }

  [[noreturn]] void refuse_alloc_conf(const std::string& why) const {
    throw InvalidArgument("--alloc-conf: torch refuses '" + job_.alloc_conf.value_or("") + "': " + why);
  }

  std::unique_ptr<MemTracker> make_tracker(Trainer& trainer) {
    MemTrackerOptions options;
    if (request_.log) options.log = &log_;
    if (trainer.sharded()) {
      auto tracker = std::make_unique<FSDPMemTracker>(trainer.model(), trainer.optimizer(), options);
      fsdp_ = tracker.get();
      trainer.on_inputs = [this](const at::Tensor& tokens, const at::Tensor& targets) {
        fsdp_->track_inputs(tokens, targets);
      };
      return tracker;
    }
    auto tracker = std::make_unique<MemTracker>(options);
    tracker->track_external(trainer.model(), trainer.optimizer());
    return tracker;
  }

  void note_books(const PhaseMeter& meter) {
    report_.peak = meter.highest();
    const auto memory = pretend::control::memory(0);
    report_.peak.device = memory.peak;
    report_.peak.device_parts = parts_of(memory);
    report_.before_steps = meter.before_steps();
    report_.steps = meter.steps();
    planned_.ops = pretend::control::work().launches;
    report_.host_pinned = pretend::control::host().pinned_peak;
    report_.alloc_retries =
        static_cast<std::uint64_t>(allocator::getDeviceStats(c10::cuda::current_device()).num_alloc_retries);
  }

  void note_contents(Trainer& trainer, MemTracker& tracker) {
    auto found = attribution(tracker, kDevice, tree_of(trainer), static_cast<int>(request_.depth));
    Bytes total = 0;
    for (const auto& category : found.categories) total += category.bytes;
    if (total != report_.peak.active) {
      throw InternalError("the tracker's peak is " + std::to_string(total) + " bytes, the allocator's " +
                          std::to_string(report_.peak.active));
    }
    report_.peak.categories = std::move(found.categories);
    report_.peak.module = std::move(found.module);
    report_.peak.stage = std::move(found.stage);
    report_.causes = std::move(found.causes);
    report_.modules = std::move(found.modules);
    const auto peak = tracker.snapshot(SnapshotKind::kPeak);
    if (const auto cpu = peak.find("cpu"); cpu != peak.end() && job_.offload != job::Offload::kNone) {
      planned_.host = static_cast<Bytes>(cpu->second.total());
    }
  }

  const job::PlanRequest& request_;
  job::Job job_;
  architecture::Architecture architecture_;
  ledger::Log log_;
  FSDPMemTracker* fsdp_ = nullptr;
  report::PlannedJob planned_;
  report::Report report_;
};

}  // namespace

report::Report run_job(const job::PlanRequest& request) { return Run(request).take(); }

}  // namespace plimsoll::plan
