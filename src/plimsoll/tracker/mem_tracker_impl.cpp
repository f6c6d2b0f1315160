#include "plimsoll/tracker/mem_tracker_impl.h"

#include <c10/util/Exception.h>
#include <torch/csrc/autograd/graph_task.h>

#include <functional>
#include <tuple>
#include <unordered_set>

#include "plimsoll/nn/module_contents.h"

namespace plimsoll::inline tracker {

namespace {

int current_pass() { return torch::autograd::get_current_graph_task_id(); }

}  // namespace

MemTracker::Impl::Impl(const MemTrackerOptions& options)
    : shared_ledger_(std::make_shared<TrackedLedger>(ledger::Ledger::Options{.steps = options.steps}, options.log)),
      tensors(std::make_shared<WatchedTensors>(shared_ledger_)) {}

MemTracker::Impl::~Impl() {
  tracked.set_tracking(false);
  remove_hooks();
}

// --- Scopes --------------------------------------------------------------------------------------------------------

void MemTracker::Impl::enter() {
  {
    std::lock_guard lock(entering_);
    TORCH_CHECK(
        depth_ == 0 || thread_ == std::this_thread::get_id(),
        "this MemTracker is entered on another thread already. Leave that scope first, or use a tracker for each "
        "thread: several may be at work at once.");
    if (depth_++ > 0) return;
    thread_ = std::this_thread::get_id();
  }
  tracked.refresh();
  tensors->look_again();
  if (extension != nullptr) extension->look_again();
  add_hooks();
  if (capture::has_other_devices()) reporting_.emplace();
  tracked.with_ledger([&](ledger::Ledger& ledger) {
    entered_ = true;
    last_peaks_.clear();
    last_peaks_reserved_.clear();
    records.close_all(ledger);
    ledger.reset_run_peak();
  });
  tracked.set_tracking(true);
}

void MemTracker::Impl::leave() noexcept {
  {
    std::lock_guard lock(entering_);
    if (depth_ > 1) {
      --depth_;
      return;
    }
  }
  tracked.set_tracking(false);
  reporting_.reset();
  remove_hooks();
  tracked.refresh();
  tracked.with_ledger([&](ledger::Ledger& ledger) {
    entered_ = false;
    records.close_all(ledger);
    for_each_device(ledger, [&](auto device) {
      last_peaks_.push_back(ledger.retain(ledger.run_peak(device)));
      last_peaks_reserved_.push_back(ledger.peak_reserved(device));
    });
  });
  std::lock_guard lock(entering_);
  depth_ = 0;
}

void MemTracker::Impl::add_hooks() {
  modules.clear_user_hooks();
  modules.register_user_hooks({
      .pre_forward = std::bind_front(&Impl::before_forward, this),
      .post_forward = std::bind_front(&Impl::after_forward, this),
      .pre_backward = std::bind_front(&Impl::before_backward, this),
      .post_backward = std::bind_front(&Impl::after_backward, this),
  });
  modules.on_pass_end(
      [this](int pass) { tracked.with_ledger([&](ledger::Ledger& ledger) { records.close_pass(pass, ledger); }); });
  modules.enter();
  handles_.push_back(
      nn::register_global_step_pre_hook([this](auto& optimizer) { tracked.step_entered(optimizer.optimizer_name()); }));
  handles_.push_back(
      nn::register_global_step_post_hook([this](auto& optimizer) { after_step(optimizer); }, {.always_call = true}));
  handles_.push_back(
      nn::register_global_state_hook([this](auto&, const at::Tensor& parameter, std::string_view,
                                            const at::Tensor& state) { tensors->name_state(parameter, state); }));
}

void MemTracker::Impl::remove_hooks() noexcept {
  modules.clear_user_hooks();
  modules.on_pass_end(nullptr);
  modules.exit();
  for (auto& handle : std::exchange(handles_, {})) handle.remove();
}

// --- Called by the hooks -------------------------------------------------------------------------------------------

std::int64_t MemTracker::Impl::described_bytes(const nn::Tensors& tensors) {
  std::int64_t bytes = 0;
  for (const auto& tensor : tensors) bytes += tracked.describe(tensor);
  return bytes;
}

std::pair<std::int64_t, std::int64_t> MemTracker::Impl::held_bytes(const torch::nn::Module& module) {
  std::unordered_set<c10::TensorImpl*> counted;  // A tied parameter occurs twice.
  std::pair<std::int64_t, std::int64_t> held;
  const auto add = [&](std::int64_t& bytes, const std::vector<at::Tensor>& tensors) {
    for (const auto& tensor : tensors) {
      if (counted.insert(tensor.unsafeGetTensorImpl()).second) bytes += tracked.describe(tensor);
    }
  };
  const std::function<void(const torch::nn::Module&)> add_all = [&](const torch::nn::Module& one) {
    add(held.first, nn::parameters_of(one));
    add(held.second, nn::buffers_of(one));
    for (const auto& [name, child] : nn::children_of(one)) add_all(*child);
  };
  add_all(module);
  return held;
}

void MemTracker::Impl::before_forward(torch::nn::Module& module, nn::Tensors& arguments) {
  const bool backward = ModuleTracker::is_bw();
  const bool outermost = !backward && modules.outermost();
  const auto fqn = modules.assign_name(module);
  const bool known = tracked.with_ledger([&](ledger::Ledger& ledger) {
    const auto* record = records.find(module, ledger);
    return record != nullptr && record->fqn == fqn;
  });
  std::pair<std::int64_t, std::int64_t> held;
  if (!known) {
    tensors->add(module, fqn);
    held = held_bytes(module);
  }
  if (outermost && step_due_) {
    tensors->look_again();
    if (extension != nullptr) extension->before_step();
  }
  const auto inputs = described_bytes(arguments);
  tracked.refresh();
  tracked.with_ledger([&](ledger::Ledger& ledger) {
    if (outermost) begin_pass(ledger);
    auto& record = record_of(module, fqn, ledger);
    if (!known) std::tie(record.parameter_bytes, record.buffer_bytes) = held;
    if (!backward) record.input_bytes = inputs;
    ModuleRecords::enter(record, backward ? ModuleState::kPreForwardAC : ModuleState::kPreForward, current_pass(),
                         ledger);
  });
  if (user_hooks.pre_forward) user_hooks.pre_forward(module, arguments);
}

ModuleRecords::Record& MemTracker::Impl::record_of(torch::nn::Module& module, const std::string& fqn,
                                                   ledger::Ledger& ledger) {
  auto* record = records.find(module, ledger);
  if (record == nullptr) return records.add(module, fqn, ledger.owner(fqn));
  // The root is part of a larger module now.
  if (record->fqn != fqn && record->open.empty()) {
    record->fqn = fqn;
    record->owner = ledger.owner(fqn);
  }
  return *record;
}

/// A root module begins its forward, and perhaps a step.
void MemTracker::Impl::begin_pass(ledger::Ledger& ledger) {
  if (step_due_.exchange(false)) ledger.step_begun();
  tracked.prune_descriptions();
  ledger.phase(ledger::phases::kForward);
}

void MemTracker::Impl::after_forward(torch::nn::Module& module, nn::Tensors& arguments, nn::Tensors& results) {
  const bool backward = ModuleTracker::is_bw();
  const auto outputs = described_bytes(results);
  tracked.refresh();
  tracked.with_ledger([&](ledger::Ledger& ledger) {
    auto* record = records.find(module, ledger);
    if (record == nullptr) return;
    if (backward) {
      ModuleRecords::leave(*record, ModuleState::kPostForwardAC, ModuleState::kPreForwardAC, ledger);
    } else {
      record->output_bytes = outputs;
      ModuleRecords::leave(*record, ModuleState::kPostForward, ModuleState::kPreForward, ledger);
    }
  });
  if (backward && extension != nullptr) extension->after_recomputed_forward(module);
  if (user_hooks.post_forward) user_hooks.post_forward(module, arguments, results);
}

void MemTracker::Impl::before_backward(torch::nn::Module* module, const std::string& fqn, const Gradients& gradients) {
  tracked.refresh();
  if (module != nullptr) {
    tracked.with_ledger([&](ledger::Ledger& ledger) {
      if (ledger.current_phase() != ledger::phases::kBackward) ledger.phase(ledger::phases::kBackward);
      if (auto* record = records.find(*module, ledger)) {
        ModuleRecords::enter(*record, ModuleState::kPreBackward, current_pass(), ledger);
      }
    });
  }
  if (user_hooks.pre_backward) user_hooks.pre_backward(module, fqn, gradients);
}

void MemTracker::Impl::after_backward(torch::nn::Module* module, const std::string& fqn, const Gradients& gradients) {
  tracked.refresh();
  if (module != nullptr) {
    tracked.with_ledger([&](ledger::Ledger& ledger) {
      if (auto* record = records.find(*module, ledger)) {
        ModuleRecords::leave(*record, ModuleState::kPostBackward, ModuleState::kPreBackward, ledger);
      }
    });
  }
  if (user_hooks.post_backward) user_hooks.post_backward(module, fqn, gradients);
}

void MemTracker::Impl::after_step(nn::StepObservable& optimizer) {
  optimizer.for_each_state([&](const at::Tensor& parameter, std::string_view, const at::Tensor& state) {
    tensors->name_state(parameter, state);
  });
  if (extension != nullptr) extension->after_step();
  tracked.step_left();
  step_due_ = true;
}

// --- Peaks ---------------------------------------------------------------------------------------------------------

std::vector<ledger::Peak> MemTracker::Impl::run_peaks(const ledger::Ledger& ledger) const {
  std::vector<ledger::Peak> peaks;
  if (entered_) {
    for_each_device(ledger, [&](auto device) { peaks.push_back(ledger.run_peak(device)); });
  } else {
    for (const auto& peak : last_peaks_) peaks.push_back(*peak);
  }
  return peaks;
}

Bytes MemTracker::Impl::peak_reserved(ledger::DeviceId device, const ledger::Ledger& ledger) const {
  if (entered_) return ledger.peak_reserved(device);
  const std::size_t index = ledger::value(device);
  return index < last_peaks_reserved_.size() ? last_peaks_reserved_[index] : Bytes{0};
}

}  // namespace plimsoll::inline tracker
