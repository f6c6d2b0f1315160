#include "plimsoll/python/py_fsdp.h"

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "plimsoll/nn/autograd_hooks.h"
#include "plimsoll/python/py_module.h"

namespace plimsoll::python {

using fsdp::MemoryUse;
using fsdp::Stage;

namespace {

using Key = FSDPRuntime::Key;

/// Who listens. Whoever tells holds the lock shared, so that nobody is called after its stop().
struct Listeners {
  std::shared_mutex mutex;
  std::vector<FSDPRuntime::Listener*> all;

  static Listeners& of_process() {
    static auto* const listeners = new Listeners;
    return *listeners;
  }

  template <class Tell>
  void tell(const Tell& tell) {
    const std::shared_lock lock(mutex);
    for (auto* listener : all) tell(*listener);
  }
};

/// A token that lives as long as an object of Python's. Guarded by the interpreter's lock.
struct Life {
  std::shared_ptr<const void> token;
  py::object weak_reference;
};

std::unordered_map<PyObject*, Life>& lives() {
  static auto* const all = new std::unordered_map<PyObject*, Life>;
  return *all;
}

FSDPRuntime::Life life_of(py::handle object) {
  auto& all = lives();
  const auto known = all.find(object.ptr());
  if (known != all.end()) return known->second.token;
  auto* const address = object.ptr();
  const py::cpp_function gone([address](const py::handle&) { const auto entry = lives().extract(address); });
  py::object weak_reference = py::weakref(object, gone);
  auto token = std::make_shared<int>(0);
  all.emplace(address, Life{token, std::move(weak_reference)});
  return token;
}

/// Which group a parameter belongs to.
struct Parameters {
  struct Entry {
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> tensor;
    Key group = nullptr;

    bool is_of(Key other) const { return group == other && !tensor.expired(); }
  };
  std::mutex mutex;
  std::unordered_map<c10::TensorImpl*, Entry> groups;

  static Parameters& of_process() {
    static auto* const parameters = new Parameters;
    return *parameters;
  }
};

struct ThreadUse {
  MemoryUse use{};
  Key group = nullptr;
  c10::Device device{c10::kCPU};
};
thread_local std::vector<ThreadUse> uses;

bool is_alive(Key object) { return lives().contains(static_cast<PyObject*>(const_cast<void*>(object))); }

/// Where nothing may be thrown. Ctrl-C is not lost: the interpreter is told again.
template <class Function>
void guarded(const Function& function) noexcept {
  try {
    function();
  } catch (py::error_already_set& error) {
    if (error.matches(PyExc_KeyboardInterrupt)) {
      PyErr_SetInterrupt();
    } else {
      error.discard_as_unraisable("plimsoll: looking at FSDP2's parameters");
    }
  }
}

py::handle object_at(Key key) { return static_cast<PyObject*>(const_cast<void*>(key)); }

}  // namespace

// --- What it consists of --------------------------------------------------------------------------------------------

PyFSDP::PyFSDP(py::object look) : look_(std::move(look)) {}

PyFSDP::~PyFSDP() {
  const py::gil_scoped_acquire lock;
  look_ = {};
}

// Somebody who tells may need the interpreter's lock to come to an end; so whoever waits for him gives it away.
void PyFSDP::listen(Listener& listener) {
  const py::gil_scoped_release release;
  auto& listeners = Listeners::of_process();
  const std::unique_lock lock(listeners.mutex);
  listeners.all.push_back(&listener);
  own_ = &listener;
}

void PyFSDP::stop() {
  const py::gil_scoped_release release;
  auto& listeners = Listeners::of_process();
  const std::unique_lock lock(listeners.mutex);
  std::erase(listeners.all, own_);
}

std::optional<FSDPRuntime::State> PyFSDP::state_of(torch::nn::Module& module) {
  const py::object object = PyModule::object_of(&module);
  if (object.is_none()) return std::nullopt;
  static const auto* const method = new py::str("_get_fsdp_state");
  if (_PyType_Lookup(Py_TYPE(object.ptr()), method->ptr()) == nullptr) return std::nullopt;
  const py::object found = look_.attr("state_of")(object);
  if (found.is_none()) return std::nullopt;
  const auto [state, modules, groups] = found.cast<std::tuple<py::object, py::list, py::list>>();
  State result{state.ptr(), life_of(state), {}, {}};
  for (const auto& member : modules) result.modules.push_back(PyModule::of(member).get());
  for (const auto& group : groups) result.groups.push_back({group.ptr(), life_of(group)});
  return result;
}

at::Device PyFSDP::device_of(torch::nn::Module& root) {
  return look_.attr("device_of")(PyModule::object_of(&root)).cast<at::Device>();
}

void PyFSDP::for_each_held(Key group, const std::function<void(MemoryUse, const at::Tensor&)>& visit) const {
  if (!is_alive(group)) return;
  guarded([&] {
    for (const auto& item : look_.attr("held_by")(object_at(group))) {
      const auto [use, tensor] = item.cast<std::tuple<int, at::Tensor>>();
      visit(static_cast<MemoryUse>(use), tensor);
    }
  });
}

void PyFSDP::for_each_unsharded(Key group, const std::function<void(const at::Tensor&)>& visit) const {
  if (!is_alive(group)) return;
  guarded([&] {
    for (const auto& tensor : look_.attr("whole_parameters_of")(object_at(group))) visit(tensor.cast<at::Tensor>());
  });
}

FSDPRuntime::Key PyFSDP::group_of(const at::Tensor& parameter) const {
  auto& parameters = Parameters::of_process();
  const std::lock_guard lock(parameters.mutex);
  const auto found = parameters.groups.find(parameter.unsafeGetTensorImpl());
  // Where it is gone, another may be at its address.
  if (found == parameters.groups.end() || found->second.tensor.expired()) return nullptr;
  return found->second.group;
}

std::optional<FSDPRuntime::Use> PyFSDP::current_use(c10::Device device) const noexcept {
  if (uses.empty() || uses.back().device != device) return std::nullopt;
  return Use{uses.back().use, uses.back().group};
}

// --- What it tells --------------------------------------------------------------------------------------------------

void tell_state(Stage stage, py::handle state) {
  Listeners::of_process().tell([&](auto& listener) { listener.state_in(stage, state.ptr()); });
}

void tell_group(Stage stage, py::handle group) {
  Listeners::of_process().tell([&](auto& listener) { listener.group_in(stage, group.ptr()); });
}

void tell_memory(MemoryUse use, const at::Tensor& tensor, py::handle group) {
  if (!tensor.defined()) return;
  Listeners::of_process().tell([&](auto& listener) { listener.memory(use, tensor, group.ptr()); });
}

void adopt_parameter(const at::Tensor& parameter, py::handle group, bool whole) {
  auto& parameters = Parameters::of_process();
  bool is_new = false;
  {
    const std::lock_guard lock(parameters.mutex);
    const auto known = parameters.groups.find(parameter.unsafeGetTensorImpl());
    is_new = known == parameters.groups.end() || !known->second.is_of(group.ptr());
    if (is_new) {
      std::erase_if(parameters.groups, [](const auto& entry) { return entry.second.tensor.expired(); });
      parameters.groups.insert_or_assign(
          parameter.unsafeGetTensorImpl(),
          Parameters::Entry{
              c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>(parameter.getIntrusivePtr()),
              group.ptr()});
    }
  }
  if (!is_new || !whole || !parameter.requires_grad()) return;
  nn::register_tensor_hook(parameter, [key = static_cast<Key>(group.ptr())](const at::Tensor& gradient) {
    Listeners::of_process().tell([&](auto& listener) { listener.memory(MemoryUse::kUnshardedGrad, gradient, key); });
    return at::Tensor();
  });
}

void use_begins(MemoryUse use, py::handle group, const at::Device& device) {
  uses.push_back({use, group.ptr(), device});
}

void use_over() {
  if (!uses.empty()) uses.pop_back();
}

}  // namespace plimsoll::python
