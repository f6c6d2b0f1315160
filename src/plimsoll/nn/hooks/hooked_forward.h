#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/any_value.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "plimsoll/nn/hooks/hooks.h"
#include "plimsoll/nn/tensor_tree.h"

/// The implementation of Hooked (hooked.h).
namespace plimsoll::nn::detail {

template <class...>
struct Types {};

/// The signature of a `forward` that is overloaded or a template.
struct NoSingleForward {};

template <class Impl>
struct DeduceForward {
  using Type = NoSingleForward;
};
template <class Impl>
  requires requires { &Impl::forward; }
struct DeduceForward<Impl> {
  using Type = decltype(&Impl::forward);
};
template <class Impl>
using ForwardOf = typename DeduceForward<Impl>::Type;

// Storage of an argument while hooks may replace its tensors. Values and constant references become copies (a copy of a
// tensor is another handle to it); other references stay references.
template <class A>
inline constexpr bool kKeptAsCopy = has_tensors<A> && std::is_copy_constructible_v<std::remove_cvref_t<A>> &&
                                    (!std::is_reference_v<A> || std::is_const_v<std::remove_reference_t<A>>);
template <class A>
using Kept = std::conditional_t<kKeptAsCopy<A>, std::remove_cvref_t<A>, std::remove_reference_t<A>&>;

// The argument for the module's own forward. A value is copied if possible, so that the caller's stays alive during the
// call: Python keeps a call's arguments until it returns, and memory must be freed at the same point.
template <class A, class T>
decltype(auto) passed(T& value) {
  if constexpr (!std::is_reference_v<A> && std::is_copy_constructible_v<A>) {
    return std::as_const(value);
  } else {
    return static_cast<A&&>(value);
  }
}

template <class T>
void collect(T& value, Tensors& tensors) {
  visit_tensors(value, [&](at::Tensor& tensor) { tensors.add(tensor); });
}

/// The base of all hooked modules: runs a call with its hooks, and clones.
template <class Self, class Impl>
class HookedModule : public Impl, public Hookable {
 protected:
  struct FromPlain {};

 public:
  using Impl::Impl;
  HookedModule(FromPlain, const Impl& plain) : Impl(plain) {}

  /// A deep copy, with copies of the hooks of this module and of its submodules.
  std::shared_ptr<torch::nn::Module> clone(const std::optional<at::Device>& device = std::nullopt) const override {
    const std::shared_ptr<torch::nn::Module> plain = Impl::clone(device);
    auto copy = std::make_shared<Self>(FromPlain(), dynamic_cast<const Impl&>(*plain));
    // The submodules were assigned to new modules from reset(), which does not copy hooks.
    const auto from = this->modules(/*include_self=*/false);
    const auto to = copy->modules(/*include_self=*/false);
    for (std::size_t i = 0; i < from.size() && i < to.size(); ++i) copy_hooks(*from[i], *to[i]);
    copy_hooks(*this, *copy);
    return copy;
  }

 protected:
  template <class R, class... A, class Forward>
  R call(Types<A...> types, const Forward& forward, std::remove_reference_t<A>&... arguments) const {
    static_assert(!(std::is_lvalue_reference_v<R> && std::is_const_v<std::remove_reference_t<R>>),
                  "The forward of a hooked module must return a value: hooks may replace its result");
    if (!HookedCall::needed(*this)) [[likely]] {
      return forward(passed<A>(arguments)...);
    }
    return call_with_hooks<R>(types, forward, arguments...);
  }

 private:
  static void copy_hooks(const torch::nn::Module& from, torch::nn::Module& to) {
    const auto* source = dynamic_cast<const Hookable*>(&from);
    auto* target = dynamic_cast<Hookable*>(&to);
    if (source != nullptr && target != nullptr) *target = *source;
  }

  template <class R, class... A, class Forward>
  R call_with_hooks(Types<A...>, const Forward& forward, std::remove_reference_t<A>&... arguments) const {
    std::tuple<Kept<A>...> kept(arguments...);
    Tensors tensors;
    std::apply([&](auto&... argument) { (collect(argument, tensors), ...); }, kept);
    HookedCall hooks(const_cast<HookedModule&>(*this), *this, tensors);
    const auto run = [&]() -> R {
      try {
        hooks.before();
        return std::apply([&](auto&... argument) -> R { return forward(passed<A>(argument)...); }, kept);
      } catch (...) {
        Tensors none;
        hooks.failed(none);
        throw;
      }
    };
    Tensors results;
    if constexpr (std::is_void_v<R>) {
      run();
      hooks.after(results);
    } else {
      R result = run();
      collect(result, results);
      hooks.after(results);
      return result;
    }
  }
};

/// Whether the last of the arguments A… may be left out in a call of Impl's forward.
template <class Impl, class Given, class... Left>
struct Omittable : std::false_type {};
template <class Impl, class... Given, class Last>
    struct Omittable<Impl, Types<Given...>, Last> : std::bool_constant < requires(Impl impl) {
  impl.forward(std::declval<Given>()...);
}>{};
template <class Impl, class... Given, class Next, class... Left>
struct Omittable<Impl, Types<Given...>, Next, Left...> : Omittable<Impl, Types<Given..., Next>, Left...> {};
template <class Impl, class... A>
inline constexpr bool kOmittable = Omittable<Impl, Types<>, A...>::value;

/// A class with `forward` of the given signature, which runs Impl's with hooks.
template <class Self, class Impl, bool kConst, bool kDefaults, class R, class... A>
class HookedForward;

template <class Self, class Impl, class R, class... A>
class HookedForward<Self, Impl, /*kConst=*/false, /*kDefaults=*/false, R, A...> : public HookedModule<Self, Impl> {
 public:
  using HookedModule<Self, Impl>::HookedModule;

  R forward(A... arguments) {
    const auto run = [this](auto&&... argument) -> R {
      return Impl::forward(std::forward<decltype(argument)>(argument)...);
    };
    return this->template call<R>(Types<A...>(), run, arguments...);
  }
};

template <class Self, class Impl, class R, class... A>
class HookedForward<Self, Impl, /*kConst=*/true, /*kDefaults=*/false, R, A...> : public HookedModule<Self, Impl> {
 public:
  using HookedModule<Self, Impl>::HookedModule;

  R forward(A... arguments) const {
    const auto run = [this](auto&&... argument) -> R {
      return Impl::forward(std::forward<decltype(argument)>(argument)...);
    };
    return this->template call<R>(Types<A...>(), run, arguments...);
  }
};

}  // namespace plimsoll::nn::detail
