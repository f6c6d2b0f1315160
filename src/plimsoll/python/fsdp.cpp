#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <array>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plimsoll/base/observers.h"
#include "plimsoll/nn/hooks/autograd_hooks.h"
#include "plimsoll/python/bind.h"
#include "plimsoll/python/errors.h"
#include "plimsoll/python/stand_ins.h"

namespace plimsoll::python {

using namespace py::literals;
using fsdp::MemoryUse;
using fsdp::Stage;

namespace {

using Key = FSDPRuntime::Key;

/// The listeners. Never destroyed: models may outlive statics.
Observers<FSDPRuntime::Listener>& listeners() {
  static auto* const all = new Observers<FSDPRuntime::Listener>;
  return *all;
}

using Token = std::shared_ptr<const void>;

/// Tokens with the life of states and groups.
ByObject<Token>& lives() {
  static auto* const all = new ByObject<Token>;
  return *all;
}

FSDPRuntime::Life life_of(py::handle object) {
  return lives().get(object, [] { return std::make_shared<int>(0); });
}

/// The groups of parameters.
struct Parameters {
  using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  struct Entry {
    WeakTensor tensor;
    Key group = nullptr;
    nn::HookHandle gradients = {};  ///< of a whole parameter

    bool is_of(Key other) const { return group == other && !tensor.expired(); }
  };
  std::mutex mutex;
  std::unordered_map<c10::TensorImpl*, Entry> groups;

  /// After the last listener: removes the hooks of all parameters.
  void forget() {
    std::unordered_map<c10::TensorImpl*, Entry> dropped;
    {
      const std::lock_guard lock(mutex);
      dropped.swap(groups);
    }
    for (auto& [tensor, entry] : dropped) entry.gradients.remove();
  }

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

/// Null if it is gone.
py::handle object_at(Key key) {
  auto* const object = static_cast<PyObject*>(const_cast<void*>(key));
  return lives().find(object) == nullptr ? nullptr : object;
}

/// Calls visit(tensor) for each whole parameter of a group. In C++, because each pass does it for each group.
template <class Visit>
void for_each_whole_parameter(py::handle group, const Visit& visit) {
  static const auto* const parameters = new py::str("fsdp_params");
  static const auto* const whole = new py::str("_unsharded_param");
  for (const auto& parameter : group.attr(*parameters)) {
    const auto tensor = py::reinterpret_steal<py::object>(PyObject_GetAttr(parameter.ptr(), whole->ptr()));
    if (!tensor) {
      if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw py::error_already_set();
      PyErr_Clear();
    } else if (THPVariable_Check(tensor.ptr())) {
      visit(THPVariable_Unpack(tensor.ptr()));
    }
  }
}

/// Calls look(object) for a group that is not gone.
template <class Look>
void look_at(Key group, const Look& look) {
  if (const auto object = object_at(group)) {
    discarding_errors("plimsoll: looking at FSDP2's parameters", [&] { look(object); });
  }
}

/// torch's own FSDP2, in Python, as a tracker follows it. python/plimsoll/trackers/fsdp2/parts.py knows its states and
/// groups; the patches beside it report its events, on the thread that does the work.
class PyFSDP final : public FSDPRuntime {
 public:
  explicit PyFSDP(py::object look) : look_(std::move(look)) {}

  ~PyFSDP() override {
    const py::gil_scoped_acquire lock;
    look_ = {};
  }

  // A thread that sends an event may need the interpreter's lock to finish. So the thread that waits for it releases
  // it.
  void listen(Listener& listener) override {
    const py::gil_scoped_release release;
    own_ = &listener;
    listeners().add(listener);
  }

  void stop() override {
    const py::gil_scoped_release release;
    auto* const own = std::exchange(own_, nullptr);
    if (own == nullptr) return;
    listeners().remove(*own);
    if (listeners().empty()) Parameters::of_process().forget();
  }

  std::optional<State> state_of(torch::nn::Module& module) override {
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

  at::Device device_of(torch::nn::Module& root) override {
    return look_.attr("device_of")(PyModule::object_of(&root)).cast<at::Device>();
  }

  void for_each_held(Key group, const VisitHeld& visit) const override {
    look_at(group, [&](py::handle object) {
      for (const auto& item : look_.attr("held_by")(object)) {
        const auto [use, tensor] = item.cast<std::tuple<MemoryUse, at::Tensor>>();
        visit(use, tensor);
      }
    });
  }

  void for_each_unsharded(Key group, const VisitTensor& visit) const override {
    look_at(group, [&](py::handle object) {
      static const auto* const is_unsharded = new py::str("is_unsharded");
      if (py::cast<bool>(object.attr(*is_unsharded))) for_each_whole_parameter(object, visit);
    });
  }

  Key group_of(const at::Tensor& parameter) const override {
    auto& parameters = Parameters::of_process();
    const std::lock_guard lock(parameters.mutex);
    const auto found = parameters.groups.find(parameter.unsafeGetTensorImpl());
    // If it is gone, another may have its address.
    if (found == parameters.groups.end() || found->second.tensor.expired()) return nullptr;
    return found->second.group;
  }

  std::optional<Use> current_use(c10::Device device) const noexcept override {
    if (uses.empty() || uses.back().device != device) return std::nullopt;
    return Use{uses.back().use, uses.back().group};
  }

 private:
  py::object look_;
  Listener* own_ = nullptr;
};

// --- Events --------------------------------------------------------------------------------------------------------

/// Stops garbage collection while events go to listeners, on any thread. Listeners run Python, and a tracker that is
/// collected leaves the list of listeners: it would wait for the event that it is a part of. REQUIRES: the
/// interpreter's lock.
class NoCollection {
 public:
  NoCollection() {
    if (events_++ == 0) was_enabled_ = PyGC_Disable() != 0;
  }
  ~NoCollection() {
    if (--events_ == 0 && was_enabled_) PyGC_Enable();
  }
  NoCollection(const NoCollection&) = delete;
  NoCollection& operator=(const NoCollection&) = delete;

 private:
  static inline int events_ = 0;
  static inline bool was_enabled_ = false;
};

template <class Tell>
void tell_all(const Tell& tell) {
  const py::gil_scoped_acquire lock;
  const NoCollection no_collection;
  listeners().for_each(tell);
}

void tell_state(Stage stage, py::handle state) {
  tell_all([&](auto& listener) { listener.state_in(stage, state.ptr()); });
}

void tell_group(Stage stage, py::handle group) {
  tell_all([&](auto& listener) { listener.group_in(stage, group.ptr()); });
}

void tell_memory(MemoryUse use, const at::Tensor& tensor, py::handle group) {
  if (!tensor.defined()) return;
  tell_all([&](auto& listener) { listener.memory(use, tensor, group.ptr()); });
}

/// The gradients of the whole parameters. An accumulated gradient may be another tensor than the computed one.
void tell_whole_gradients(py::handle group) {
  tell_all([&](auto& listener) {
    for_each_whole_parameter(group, [&](const at::Tensor& parameter) {
      const auto& gradient = parameter.grad();
      if (gradient.defined()) listener.memory(MemoryUse::kUnshardedGrad, gradient, group.ptr());
    });
  });
}

/// The parameter, whole or sharded, belongs to the group. Gradients of a whole one are the group's unsharded gradients.
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
          Parameters::Entry{Parameters::WeakTensor(parameter.getIntrusivePtr()), group.ptr()});
    }
  }
  if (!is_new || !whole || !parameter.requires_grad()) return;
  auto handle = nn::register_tensor_hook(parameter, [key = static_cast<Key>(group.ptr())](const at::Tensor& gradient) {
    tell_all([&](auto& listener) { listener.memory(MemoryUse::kUnshardedGrad, gradient, key); });
    return at::Tensor();
  });
  const std::lock_guard lock(parameters.mutex);
  const auto entry = parameters.groups.find(parameter.unsafeGetTensorImpl());
  if (entry != parameters.groups.end()) entry->second.gradients = std::move(handle);
}

/// The use of memory that this thread allocates on the device, until use_over(). Nests.
void use_begins(MemoryUse use, py::handle group, const at::Device& device) {
  uses.push_back({use, group.ptr(), device});
}

void use_over() {
  if (!uses.empty()) uses.pop_back();
}

// --- For Python -----------------------------------------------------------------------------------------------------

template <class Value>
using Named = std::pair<const char*, Value>;

constexpr std::array<Named<MemoryUse>, fsdp::kMemoryUses> kUses{{
    {"SHARDED_PARAM", MemoryUse::kShardedParam},
    {"UNSHARDED_PARAM", MemoryUse::kUnshardedParam},
    {"ALL_GATHER_INPUT", MemoryUse::kAllGatherInput},
    {"ALL_GATHER_OUTPUT", MemoryUse::kAllGatherOutput},
    {"ALL_GATHER_COPY_OUT", MemoryUse::kAllGatherCopyOut},
    {"POST_FORWARD_SHARD", MemoryUse::kPostForwardShard},
    {"UNSHARDED_GRAD", MemoryUse::kUnshardedGrad},
    {"ACCUMULATED_GRAD", MemoryUse::kAccumulatedGrad},
    {"REDUCE_SCATTER_INPUT", MemoryUse::kReduceScatterInput},
    {"REDUCE_SCATTER_OUTPUT", MemoryUse::kReduceScatterOutput},
    {"ALL_REDUCE", MemoryUse::kAllReduce},
    {"PARTIAL_GRAD", MemoryUse::kPartialGrad},
    {"SHARDED_GRAD", MemoryUse::kShardedGrad},
}};

constexpr std::array<Named<Stage>, fsdp::kStages> kStages{{
    {"BEFORE_PRE_FORWARD", Stage::kBeforePreForward},
    {"AFTER_PRE_FORWARD", Stage::kAfterPreForward},
    {"BEFORE_POST_FORWARD", Stage::kBeforePostForward},
    {"AFTER_POST_FORWARD", Stage::kAfterPostForward},
    {"BEFORE_PRE_BACKWARD", Stage::kBeforePreBackward},
    {"AFTER_PRE_BACKWARD", Stage::kAfterPreBackward},
    {"BEFORE_POST_BACKWARD", Stage::kBeforePostBackward},
    {"AFTER_POST_BACKWARD", Stage::kAfterPostBackward},
    {"UNSHARD_BY_HAND", Stage::kUnshardByHand},
}};

template <class Value, std::size_t kCount>
constexpr bool has_all_in_order(const std::array<Named<Value>, kCount>& values) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (values[i].first == nullptr || static_cast<std::size_t>(values[i].second) != i) return false;
  }
  return true;
}
static_assert(has_all_in_order(kUses) && has_all_in_order(kStages), "an enumerator has no name for Python");

template <class Value, std::size_t kCount>
void bind_enumeration(py::module_& module, const char* name, const std::array<Named<Value>, kCount>& values) {
  py::enum_<Value> enumeration(module, name);
  for (const auto& [value_name, value] : values) enumeration.value(value_name, value);
}

}  // namespace

std::unique_ptr<FSDPRuntime> python_fsdp(py::object look) { return std::make_unique<PyFSDP>(std::move(look)); }

void bind_fsdp(py::module_& module) {
  bind_enumeration(module, "MemoryUse", kUses);
  bind_enumeration(module, "Stage", kStages);
  module.def("tell_state", &tell_state, "stage"_a, "state"_a);
  module.def("tell_group", &tell_group, "stage"_a, "group"_a);
  module.def("tell_memory", &tell_memory, "use"_a, "tensor"_a, "group"_a);
  module.def("tell_whole_gradients", &tell_whole_gradients, "group"_a);
  module.def("adopt_parameter", &adopt_parameter, "parameter"_a, "group"_a, "whole"_a);
  module.def("use_begins", &use_begins, "use"_a, "group"_a, "device"_a);
  module.def("use_over", &use_over);
}

}  // namespace plimsoll::python
