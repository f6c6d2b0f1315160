#pragma once

#include <c10/util/Exception.h>
#include <torch/nn/modules/container/any_value.h>

#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "plimsoll/nn/hooks/hooked_forward.h"

/// Hooked modules with optional arguments of `forward`. A default value cannot be read from a signature, and a second
/// `forward` would hide the signature from AnyModule. So the one `forward` gets default arguments that look up the
/// values of torch's FORWARD_HAS_DEFAULT_ARGS. These are recorded when the first module of the type is made, so before
/// any call.
namespace plimsoll::nn::detail {

template <class Self, class Impl, bool kConst, class... A>
class HookedWithDefaults : public HookedModule<Self, Impl> {
 public:
  using HookedModule<Self, Impl>::HookedModule;

 protected:
  template <std::size_t kIndex, class Argument>
  static Argument omitted() {
    static_assert(!std::is_reference_v<Argument> || std::is_const_v<std::remove_reference_t<Argument>>,
                  "Only arguments taken by value or constant reference can be left out of a call of a hooked module");
    static_assert(callable_with(std::make_index_sequence<kIndex>()),
                  "Too few arguments for the forward of this module");
    const auto& value = std::get<kIndex>(defaults());
    TORCH_CHECK(value, "Argument ", kIndex, " of ", c10::demangle(typeid(Impl).name()),
                "::forward was left out, but its default value is unknown. Declare it in the class with "
                "FORWARD_HAS_DEFAULT_ARGS({",
                kIndex, ", torch::nn::AnyValue(…)}), with exactly the argument's type.");
    return *value;
  }

 private:
  using Defaults = std::tuple<std::optional<std::remove_cvref_t<A>>...>;
  using Callee = std::conditional_t<kConst, const Impl&, Impl&>;

  template <std::size_t... kGiven>
  static constexpr bool callable_with(std::index_sequence<kGiven...>) {
    return requires(Callee impl) { impl.forward(std::declval<std::tuple_element_t<kGiven, std::tuple<A...>>>()...); };
  }

  static Defaults& defaults() {
    static Defaults values;
    return values;
  }

  bool learn_defaults() {
    static const bool learnt = [this] {
      if (!this->_forward_has_default_args()) return false;
      std::vector<torch::nn::AnyValue> given;
      for (unsigned i = 0; i < this->_forward_num_required_args(); ++i) given.emplace_back(0);
      auto values = this->_forward_populate_default_args(std::move(given));
      learn(values, std::index_sequence_for<A...>());
      return true;
    }();
    return learnt;
  }

  template <std::size_t... kIndex>
  void learn(std::vector<torch::nn::AnyValue>& values, std::index_sequence<kIndex...>) {
    const auto learn_one = [&](auto& known, std::size_t index) {
      using Value = typename std::remove_reference_t<decltype(known)>::value_type;
      if (index < this->_forward_num_required_args() || index >= values.size()) return;
      if (auto* value = values[index].template try_get<Value>()) known.emplace(*value);
    };
    (learn_one(std::get<kIndex>(defaults()), kIndex), ...);
  }

  bool defaults_learnt_ = learn_defaults();
};

// One class for each number of arguments: a parameter pack cannot have default arguments.
#define PLIMSOLL_LIST(...) __VA_ARGS__
#define PLIMSOLL_PARAMETER(i) A##i a##i = HookedForward::template omitted<i, A##i>()
#define PLIMSOLL_HOOKED_FORWARD_OF(kConst, QUALIFIER, CLASSES, TYPES, PARAMETERS, ARGUMENTS) \
  template <class Self, class Impl, class R, CLASSES>                                        \
  class HookedForward<Self, Impl, kConst, /*kDefaults=*/true, R, TYPES>                      \
      : public HookedWithDefaults<Self, Impl, kConst, TYPES> {                               \
   public:                                                                                   \
    using HookedWithDefaults<Self, Impl, kConst, TYPES>::HookedWithDefaults;                 \
                                                                                             \
    R forward(PARAMETERS) QUALIFIER {                                                        \
      const auto run = [this](auto&&... argument) -> R {                                     \
        return Impl::forward(std::forward<decltype(argument)>(argument)...);                 \
      };                                                                                     \
      return this->template call<R>(Types<TYPES>(), run, ARGUMENTS);                         \
    }                                                                                        \
  };
#define PLIMSOLL_HOOKED_FORWARD(CLASSES, TYPES, PARAMETERS, ARGUMENTS)                                             \
  PLIMSOLL_HOOKED_FORWARD_OF(false, , PLIMSOLL_LIST(CLASSES), PLIMSOLL_LIST(TYPES), PLIMSOLL_LIST(PARAMETERS),     \
                             PLIMSOLL_LIST(ARGUMENTS))                                                             \
  PLIMSOLL_HOOKED_FORWARD_OF(true, const, PLIMSOLL_LIST(CLASSES), PLIMSOLL_LIST(TYPES), PLIMSOLL_LIST(PARAMETERS), \
                             PLIMSOLL_LIST(ARGUMENTS))

PLIMSOLL_HOOKED_FORWARD(PLIMSOLL_LIST(class A0), PLIMSOLL_LIST(A0), PLIMSOLL_LIST(PLIMSOLL_PARAMETER(0)),
                        PLIMSOLL_LIST(a0))
PLIMSOLL_HOOKED_FORWARD(PLIMSOLL_LIST(class A0, class A1), PLIMSOLL_LIST(A0, A1),
                        PLIMSOLL_LIST(PLIMSOLL_PARAMETER(0), PLIMSOLL_PARAMETER(1)), PLIMSOLL_LIST(a0, a1))
PLIMSOLL_HOOKED_FORWARD(PLIMSOLL_LIST(class A0, class A1, class A2), PLIMSOLL_LIST(A0, A1, A2),
                        PLIMSOLL_LIST(PLIMSOLL_PARAMETER(0), PLIMSOLL_PARAMETER(1), PLIMSOLL_PARAMETER(2)),
                        PLIMSOLL_LIST(a0, a1, a2))
PLIMSOLL_HOOKED_FORWARD(PLIMSOLL_LIST(class A0, class A1, class A2, class A3), PLIMSOLL_LIST(A0, A1, A2, A3),
                        PLIMSOLL_LIST(PLIMSOLL_PARAMETER(0), PLIMSOLL_PARAMETER(1), PLIMSOLL_PARAMETER(2),
                                      PLIMSOLL_PARAMETER(3)),
                        PLIMSOLL_LIST(a0, a1, a2, a3))
PLIMSOLL_HOOKED_FORWARD(PLIMSOLL_LIST(class A0, class A1, class A2, class A3, class A4),
                        PLIMSOLL_LIST(A0, A1, A2, A3, A4),
                        PLIMSOLL_LIST(PLIMSOLL_PARAMETER(0), PLIMSOLL_PARAMETER(1), PLIMSOLL_PARAMETER(2),
                                      PLIMSOLL_PARAMETER(3), PLIMSOLL_PARAMETER(4)),
                        PLIMSOLL_LIST(a0, a1, a2, a3, a4))
PLIMSOLL_HOOKED_FORWARD(PLIMSOLL_LIST(class A0, class A1, class A2, class A3, class A4, class A5),
                        PLIMSOLL_LIST(A0, A1, A2, A3, A4, A5),
                        PLIMSOLL_LIST(PLIMSOLL_PARAMETER(0), PLIMSOLL_PARAMETER(1), PLIMSOLL_PARAMETER(2),
                                      PLIMSOLL_PARAMETER(3), PLIMSOLL_PARAMETER(4), PLIMSOLL_PARAMETER(5)),
                        PLIMSOLL_LIST(a0, a1, a2, a3, a4, a5))
PLIMSOLL_HOOKED_FORWARD(PLIMSOLL_LIST(class A0, class A1, class A2, class A3, class A4, class A5, class A6),
                        PLIMSOLL_LIST(A0, A1, A2, A3, A4, A5, A6),
                        PLIMSOLL_LIST(PLIMSOLL_PARAMETER(0), PLIMSOLL_PARAMETER(1), PLIMSOLL_PARAMETER(2),
                                      PLIMSOLL_PARAMETER(3), PLIMSOLL_PARAMETER(4), PLIMSOLL_PARAMETER(5),
                                      PLIMSOLL_PARAMETER(6)),
                        PLIMSOLL_LIST(a0, a1, a2, a3, a4, a5, a6))
PLIMSOLL_HOOKED_FORWARD(PLIMSOLL_LIST(class A0, class A1, class A2, class A3, class A4, class A5, class A6, class A7),
                        PLIMSOLL_LIST(A0, A1, A2, A3, A4, A5, A6, A7),
                        PLIMSOLL_LIST(PLIMSOLL_PARAMETER(0), PLIMSOLL_PARAMETER(1), PLIMSOLL_PARAMETER(2),
                                      PLIMSOLL_PARAMETER(3), PLIMSOLL_PARAMETER(4), PLIMSOLL_PARAMETER(5),
                                      PLIMSOLL_PARAMETER(6), PLIMSOLL_PARAMETER(7)),
                        PLIMSOLL_LIST(a0, a1, a2, a3, a4, a5, a6, a7))

#undef PLIMSOLL_HOOKED_FORWARD
#undef PLIMSOLL_HOOKED_FORWARD_OF
#undef PLIMSOLL_PARAMETER
#undef PLIMSOLL_LIST

}  // namespace plimsoll::nn::detail
