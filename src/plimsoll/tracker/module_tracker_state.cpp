#include "plimsoll/tracker/module_tracker_state.h"

#include <c10/core/GradMode.h>
#include <c10/util/ScopeExit.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "plimsoll/nn/module_contents.h"

namespace plimsoll::inline tracker {

using State = ModuleTracker::State;

namespace {

void pop(State::NameCounts& names, const State::Name& name, int times = 1) {
  const auto entry = names.find(name);
  if (entry != names.end() && (entry->second -= times) <= 0) names.erase(entry);
}

std::vector<at::Tensor> needing_gradients(const nn::Tensors& tensors) {
  std::vector<at::Tensor> found;
  std::ranges::copy_if(tensors, std::back_inserter(found), &at::Tensor::requires_grad);
  return found;
}

bool any_of_the_same(const std::vector<at::Tensor>& some, const std::vector<at::Tensor>& others) {
  return std::ranges::any_of(some, [&](const at::Tensor& one) {
    return std::ranges::any_of(others, [&](const at::Tensor& other) { return one.is_same(other); });
  });
}

/// A module below another, and its relative path: ".layers.0".
using Below = std::pair<std::string, std::shared_ptr<torch::nn::Module>>;

void find_below(torch::nn::Module& module, const std::string& path, std::vector<Below>& found) {
  for (const auto& [name, child] : nn::children_of(module)) {
    const auto path_of_child = path + "." + name;
    found.emplace_back(path_of_child, child);
    find_below(*child, path_of_child, found);
  }
}

}  // namespace

State::Name State::name_of(torch::nn::Module& module) {
  // A module that is gone had the same address.
  const auto is_known = [](const Known& entry) { return entry.fqn && !is_gone(entry.module); };
  {
    std::lock_guard lock(mutex);
    const auto entry = known.find(&module);
    if (entry != known.end() && is_known(entry->second) && entry->second.named_children) return entry->second.fqn;
  }
  const auto class_name = nn::class_name(module);
  std::vector<Below> below;
  find_below(module, "", below);
  const bool has_parameters = !nn::parameters_of(module).empty() || std::ranges::any_of(below, [](const Below& one) {
    return !nn::parameters_of(*one.second).empty();
  });

  std::lock_guard lock(mutex);
  auto& entry = known[&module];
  if (!is_known(entry)) {
    entry = {};  // The name of a module that is gone is free.
    const auto own = names_apart && has_parameters ? free_name(class_name) : class_name;
    entry = {module.weak_from_this(), std::make_shared<const std::string>(own), false};
  }
  const auto name = entry.fqn;
  if (!std::exchange(entry.named_children, true)) {
    std::unordered_set<const torch::nn::Module*> named;
    for (const auto& [path, child] : below) {
      if (!named.insert(child.get()).second && names_apart) continue;
      known[child.get()] = {child, std::make_shared<const std::string>(*name + path), true};
    }
  }
  return name;
}

std::string State::free_name(const std::string& class_name) const {
  std::unordered_set<std::string_view> taken;
  for (const auto& [address, entry] : known) {
    if (entry.fqn && !is_gone(entry.module)) taken.insert(*entry.fqn);
  }
  std::string name = class_name;
  for (int number = 2; taken.contains(name); ++number) name = class_name + "#" + std::to_string(number);
  return name;
}

// --- forward, on the thread that calls the module

void State::before_forward(torch::nn::Module& module, nn::Tensors& arguments) {
  const auto call = std::make_shared<Call>();
  call->address = &module;
  call->module = module.weak_from_this();
  call->in_backward = is_bw();
  call->name = name_of(module);
  std::function<void(torch::nn::Module&, nn::Tensors&)> hook;
  std::vector<nn::HookHandle> left_over;
  {
    std::lock_guard lock(mutex);
    if (!call->in_backward && forwards++ == 0) left_over = forget_leftovers();
    call->number = ++numbered;
    ++running[call->name];
    calls[std::this_thread::get_id()].push_back(call);
    hook = user.pre_forward;
  }
  for (auto& handle : left_over) handle.remove();  // Without the lock: it may drop tensors.
  if (hook) hook(module, arguments);
  if (call->in_backward || !c10::GradMode::is_enabled()) return;
  end_with(call, needing_gradients(arguments));
}

/// The backward of the call ends with the gradients of these tensors; without tensors, with the whole pass.
void State::end_with(const CallPtr& call, const std::vector<at::Tensor>& inputs) {
  call->ends_with_pass = inputs.empty();
  if (inputs.empty()) return;
  hook_gradients(call, inputs, nn::MultiGradMode::kAll, &State::after_backward);
}

void State::after_forward(torch::nn::Module& module, nn::Tensors& arguments, nn::Tensors& results) {
  CallPtr call;
  std::function<void(torch::nn::Module&, nn::Tensors&, nn::Tensors&)> hook;
  {
    std::lock_guard lock(mutex);
    const auto own = calls.find(std::this_thread::get_id());
    if (own == calls.end()) return;
    auto& open = own->second;
    const auto mine =
        std::find_if(open.rbegin(), open.rend(), [&](const CallPtr& one) { return one->address == &module; });
    // Another hook ended the call before this tracker saw it.
    if (mine == open.rend()) return;
    call = *mine;
    // Inner calls that are still open were left by an exception that reaches no hook (Python's KeyboardInterrupt).
    while (open.back() != call) drop_last(open);
    hook = user.post_forward;
  }
  const auto end = c10::make_scope_exit([&] { end_call(*call); });
  if (hook) hook(module, arguments, results);
  if (call->in_backward) return;
  if (call->ends_with_pass) end_with(call, needing_gradients(arguments));  // Python gives keyword arguments only here.
  const auto outputs = needing_gradients(results);
  if (outputs.empty()) return;
  call->passes_through = any_of_the_same(outputs, needing_gradients(arguments));
  hook_gradients(call, outputs, nn::MultiGradMode::kAny, &State::before_backward);
}

void State::hook_gradients(const CallPtr& call, const std::vector<at::Tensor>& tensors, nn::MultiGradMode mode,
                           BackwardHook hook) {
  auto handle = nn::register_multi_grad_hook(
      tensors,
      [state = weak_from_this(), call, hook](const Gradients& gradients) {
        if (const auto alive = state.lock()) (alive.get()->*hook)(call, gradients);
      },
      mode);
  // The graph drops hooks on results of operators; hooks on leaves must be removed.
  if (std::ranges::none_of(tensors, [](const auto& tensor) { return tensor.is_leaf(); })) return;
  std::lock_guard lock(mutex);
  hooks_on_leaves.push_back(std::move(handle));
}

void State::end_call(const Call& call) {
  std::lock_guard lock(mutex);
  const auto own = calls.find(std::this_thread::get_id());
  if (own == calls.end() || own->second.back().get() != &call) return;
  drop_last(own->second);
  if (own->second.empty()) calls.erase(own);
}

void State::drop_last(std::vector<CallPtr>& open) {
  pop(running, open.back()->name);
  if (!open.back()->in_backward) --forwards;
  open.pop_back();
}

std::vector<nn::HookHandle> State::forget_leftovers() {
  std::erase_if(known, [](const auto& entry) { return is_gone(entry.second.module); });
  return std::exchange(hooks_on_leaves, {});
}

// --- backward, on autograd's threads

void State::before_backward(const CallPtr& call, const Gradients& gradients) {
  const int id = torch::autograd::get_current_graph_task_id();
  ModuleHooks hooks;
  Gradients ended_with;
  bool first = false, over = false;
  {
    std::lock_guard lock(mutex);
    const auto [pass, is_first] = passes.try_emplace(id);
    first = is_first;
    call->begun_in = id;
    // If a result of the module is an argument, the hook of the input comes first.
    over = call->ended_in == id;
    ended_with = std::exchange(call->ended_with, {});
    if (!over) {
      ++running[call->name];
      ++pass->second.running[call->name];
      if (call->ends_with_pass) pass->second.ending.push_back(call);
    }
    hooks.pre_backward = user.pre_backward;
    hooks.post_backward = user.post_backward;
  }
  if (first) {
    // Ends the pass also after an exception: then autograd drops its callbacks without a call.
    const std::shared_ptr<void> end(nullptr, [state = weak_from_this(), id](void*) {
      if (const auto alive = state.lock()) alive->end_pass(id);
    });
    nn::queue_callback([end, state = weak_from_this(), id] {
      if (const auto alive = state.lock()) alive->finish_pass(id);
    });
  }
  if (hooks.pre_backward) hooks.pre_backward(call->module.lock().get(), *call->name, gradients);
  if (over && hooks.post_backward) hooks.post_backward(call->module.lock().get(), *call->name, ended_with);
}

void State::after_backward(const CallPtr& call, const Gradients& gradients) {
  const int id = torch::autograd::get_current_graph_task_id();
  decltype(user.post_backward) hook;
  {
    std::lock_guard lock(mutex);
    call->ended_in = id;
    if (call->begun_in != id) {
      if (call->passes_through) call->ended_with = gradients;
      return;
    }
    hook = user.post_backward;
  }
  if (hook) hook(call->module.lock().get(), *call->name, gradients);
  std::lock_guard lock(mutex);
  pop(running, call->name);
  if (const auto pass = passes.find(id); pass != passes.end()) pop(pass->second.running, call->name);
}

/// All gradients are computed. Modules without gradients of arguments end, the last call first.
void State::finish_pass(int id) {
  std::vector<CallPtr> ending;
  {
    std::lock_guard lock(mutex);
    if (const auto pass = passes.find(id); pass != passes.end()) ending.swap(pass->second.ending);
  }
  std::ranges::sort(ending, std::greater(), [](const CallPtr& call) { return call->number; });
  for (const auto& call : ending) after_backward(call, {});
  end_pass(id);
}

void State::end_pass(int id) {
  std::function<void(int)> hook;
  {
    std::lock_guard lock(mutex);
    const auto pass = passes.find(id);
    if (pass == passes.end()) return;
    for (const auto& [name, count] : pass->second.running) pop(running, name, count);
    passes.erase(pass);
    hook = pass_ended;
  }
  if (hook) hook(id);
}

void State::forget_all() {
  running.clear();
  calls.clear();
  passes.clear();
  forwards = 0;
}

}  // namespace plimsoll::inline tracker
