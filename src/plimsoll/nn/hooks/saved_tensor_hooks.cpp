#include "plimsoll/nn/hooks/saved_tensor_hooks.h"

#include <ATen/SavedTensorHooks.h>
#include <c10/util/Exception.h>
#include <c10/util/Type.h>
#include <torch/csrc/autograd/graph_task.h>

#include <atomic>
#include <mutex>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

namespace plimsoll::nn {
namespace {

using torch::autograd::Engine;
using torch::autograd::SavedVariableHooks;
using Factory = std::shared_ptr<const SavedTensorHookFactory>;

thread_local std::vector<Factory> open_scopes;

// The hooks that were active when a backward pass was called, for its autograd threads.
class HooksOfPasses {
 public:
  void set(int pass, Factory factory) {
    const std::lock_guard lock(mutex_);
    factories_.insert_or_assign(pass, std::move(factory));
    count_.store(factories_.size(), std::memory_order_relaxed);
  }
  void erase(int pass) {
    const std::lock_guard lock(mutex_);
    factories_.erase(pass);
    count_.store(factories_.size(), std::memory_order_relaxed);
  }
  Factory find(int pass) {
    if (count_.load(std::memory_order_relaxed) == 0) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto found = factories_.find(pass);
    return found == factories_.end() ? nullptr : found->second;
  }

 private:
  std::mutex mutex_;
  std::atomic<std::size_t> count_{0};
  std::unordered_map<int, Factory> factories_;
};

class HookingEngine final : public Engine {
 public:
  std::unique_ptr<SavedVariableHooks> get_default_saved_variable_hooks() override {
    const Factory factory = factory_in_force();
    return factory ? (*factory)() : nullptr;
  }

  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(
      const std::shared_ptr<torch::autograd::GraphTask>& graph_task,
      c10::intrusive_ptr<torch::autograd::Node> graph_root, torch::autograd::InputBuffer&& input_buffer) override {
    start_threads();
    const Factory factory = factory_in_force();
    if (!factory) return Engine::execute_with_graph_task(graph_task, std::move(graph_root), std::move(input_buffer));
    struct Registered {
      HooksOfPasses& hooks;
      int pass;
      ~Registered() { hooks.erase(pass); }
    };
    const int pass = static_cast<int>(graph_task->id_);
    hooks_of_passes_.set(pass, factory);
    const Registered registered{hooks_of_passes_, pass};
    return Engine::execute_with_graph_task(graph_task, std::move(graph_root), std::move(input_buffer));
  }

 private:
  // torch starts the device threads once in a process, for the first engine that needs them. If that was another
  // engine, this one starts its own.
  void start_threads() {
    initialize_device_threads_pool();
    std::call_once(threads_started_, [this] {
      if (device_ready_queues_.empty()) start_device_threads();
    });
  }

  Factory factory_in_force() {
    if (!open_scopes.empty()) return open_scopes.back();
    const int pass = torch::autograd::get_current_graph_task_id();
    return pass == -1 ? nullptr : hooks_of_passes_.find(pass);
  }

  std::once_flag threads_started_;
  HooksOfPasses hooks_of_passes_;
};

Engine& hooking_engine() {
  // Never destroyed: its threads run until the process ends.
  static auto* const engine = new HookingEngine;
  return *engine;
}

// The hooks of one saved tensor, made of two functions.
class PackedValue final : public SavedVariableHooks {
 public:
  PackedValue(std::shared_ptr<const PackHook> pack, std::shared_ptr<const UnpackHook> unpack)
      : pack_(std::move(pack)), unpack_(std::move(unpack)) {}
  void call_pack_hook(const at::Tensor& tensor) override { value_ = (*pack_)(tensor); }
  at::Tensor call_unpack_hook() override { return (*unpack_)(value_); }

 private:
  std::shared_ptr<const PackHook> pack_;
  std::shared_ptr<const UnpackHook> unpack_;
  std::any value_;
};

SavedTensorHookFactory factory_of(PackHook pack, UnpackHook unpack) {
  return [pack = std::make_shared<const PackHook>(std::move(pack)),
          unpack = std::make_shared<const UnpackHook>(std::move(unpack))] {
    return std::make_unique<PackedValue>(pack, unpack);
  };
}

}  // namespace

void require_replaceable_engine(Engine& engine) {
  TORCH_CHECK(torch::autograd::get_current_graph_task_id() == -1,
              "Saved-tensor hooks were first used inside a backward pass, which cannot change its engine. "
              "Call plimsoll::nn::install_saved_tensor_hooks() at the start of the program.");
  TORCH_CHECK(typeid(engine) == typeid(Engine), "Expected torch's C++ autograd engine, found ",
              c10::demangle(typeid(engine).name()),
              ": saved-tensor hooks of C++ would hide its own. In a Python process use torch.autograd.graph and "
              "torch.utils.checkpoint.");
}

void install_saved_tensor_hooks() {
  static const bool installed = [] {
    require_replaceable_engine(Engine::get_default_engine());
    torch::autograd::set_default_engine_stub(&hooking_engine);
    return true;
  }();
  static_cast<void>(installed);
}

namespace {

// The engine that runs the first backward pass owns the autograd threads with their handles and workspaces; a later
// engine would allocate them again. So ours is installed at the start, unless a Python process has its own.
[[maybe_unused]] const bool installed_at_start = [] {
  const Engine& found = Engine::get_default_engine();
  if (typeid(found) == typeid(Engine)) install_saved_tensor_hooks();
  return true;
}();

}  // namespace

SavedTensorHooks::SavedTensorHooks(PackHook pack, UnpackHook unpack)
    : SavedTensorHooks(factory_of(std::move(pack), std::move(unpack))) {}

SavedTensorHooks::SavedTensorHooks(SavedTensorHookFactory factory) {
  const auto& disabled = at::SavedTensorDefaultHooks::get_disabled_error_message();
  TORCH_CHECK(!disabled, *disabled);
  install_saved_tensor_hooks();
  open_scopes.push_back(std::make_shared<const SavedTensorHookFactory>(std::move(factory)));
}

SavedTensorHooks::~SavedTensorHooks() { open_scopes.pop_back(); }

DisableSavedTensorHooks::DisableSavedTensorHooks(const std::string& message)
    : outer_(at::SavedTensorDefaultHooks::get_disabled_error_message()) {
  TORCH_CHECK(open_scopes.empty(), message);
  at::SavedTensorDefaultHooks::disable(message);
}

DisableSavedTensorHooks::~DisableSavedTensorHooks() {
  if (outer_) {
    at::SavedTensorDefaultHooks::disable(*outer_, /*fail_if_non_empty=*/false);
  } else {
    at::SavedTensorDefaultHooks::enable();
  }
}

}  // namespace plimsoll::nn
