#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <memory>
#include <optional>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>

#include "plimsoll/nn/optim/step_observable.h"

namespace torch::optim {
class Optimizer;
}  // namespace torch::optim

/// Finds modules, optimizers and tensors in the arguments of MemTracker::track_external.

namespace plimsoll::inline tracker::detail {

/// Whether T is an instance of the template.
template <class T, template <class...> class Template>
inline constexpr bool kIs = false;
template <template <class...> class Template, class... Arguments>
inline constexpr bool kIs<Template<Arguments...>, Template> = true;

template <class T>
concept ModuleHolder = std::is_base_of_v<torch::detail::ModuleHolderIndicator, T>;

template <class T>
concept MapEntry = requires(T& entry) {
  entry.key();
  entry.value();
};

template <class T>
inline constexpr bool kNothing = false;

/// Calls track_module, track_optimizer, track_stock_optimizer, track_tensor or track_value of the visitor for each
/// thing found in `object`, at any depth. Skips null pointers, empty optionals and undefined tensors.
template <class Visitor, class T>
void visit_external(Visitor& visitor, T&& object) {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<Plain, std::nullptr_t> || std::is_same_v<Plain, std::nullopt_t>) {
  } else if constexpr (std::is_same_v<Plain, at::Tensor>) {
    if (object.defined()) visitor.track_tensor(object);
  } else if constexpr (std::is_base_of_v<torch::nn::Module, Plain>) {
    visitor.track_module(object);
  } else if constexpr (std::is_base_of_v<nn::StepObservable, Plain>) {
    visitor.track_optimizer(object);
  } else if constexpr (std::is_base_of_v<torch::optim::Optimizer, Plain>) {
    visitor.track_stock_optimizer(object);
  } else if constexpr (ModuleHolder<Plain>) {
    if (!object.is_empty()) visitor.track_module(*object.ptr());
  } else if constexpr (std::is_same_v<Plain, c10::IValue>) {
    visitor.track_value(object);
  } else if constexpr (kIs<Plain, std::shared_ptr> || kIs<Plain, std::unique_ptr> || kIs<Plain, std::optional> ||
                       std::is_pointer_v<Plain>) {
    if (object) visit_external(visitor, *object);
  } else if constexpr (kIs<Plain, std::tuple> || kIs<Plain, std::pair>) {
    std::apply([&](auto&... parts) { (visit_external(visitor, parts), ...); }, object);
  } else if constexpr (MapEntry<Plain>) {
    visit_external(visitor, object.value());
  } else if constexpr (requires { typename Plain::mapped_type; }) {
    for (auto& entry : object) visit_external(visitor, entry.second);
  } else if constexpr (std::ranges::range<Plain>) {
    for (auto&& part : object) visit_external(visitor, part);
  } else {
    static_assert(
        kNothing<Plain>,
        "track_external takes modules, optimizers and tensors, and containers, pointers and optionals of them");
  }
}

}  // namespace plimsoll::inline tracker::detail
