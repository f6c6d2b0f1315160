#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/pimpl.h>

#include <utility>

#include "plimsoll/nn/hooks/hooked_defaults.h"
#include "plimsoll/nn/hooks/hooked_forward.h"
#include "plimsoll/nn/hooks/hooks.h"

namespace plimsoll::nn {

/// A module with forward hooks. Derives from the module's Impl and shadows its `forward` with the same signature, so
/// that holders, Sequential and AnyModule accept it like the Impl:
///
///     struct BlockImpl : torch::nn::Module { torch::Tensor forward(const torch::Tensor& x); … };
///     TORCH_MODULE_IMPL(Block, plimsoll::nn::Hooked<BlockImpl>);
///     Block block(…);
///     block->register_forward_hook(…);
///
/// `forward` may have any arguments and result. Hooks see the tensors in them that TensorTree finds. A hook may replace
/// arguments taken by value or constant reference without an effect on the caller's objects; a non-constant reference
/// is the caller's object. Arguments live until the call returns, as in Python.
///
/// Optional arguments must be declared with torch's FORWARD_HAS_DEFAULT_ARGS in the Impl, because C++ cannot read
/// default values from a signature. Then at most eight arguments.
///
/// `forward` is not virtual in torch: a call through a pointer to the Impl itself runs no hooks.
template <class Impl, class Forward = detail::ForwardOf<Impl>>
class Hooked;

template <class Impl, class R, class C, bool kNoexcept, class... A>
class Hooked<Impl, R (C::*)(A...) noexcept(kNoexcept)>
    : public detail::HookedForward<Hooked<Impl, R (C::*)(A...) noexcept(kNoexcept)>, Impl, /*kConst=*/false,
                                   detail::kOmittable<Impl&, A...>, R, A...> {
  using Base = detail::HookedForward<Hooked, Impl, false, detail::kOmittable<Impl&, A...>, R, A...>;

 public:
  using Base::Base;
};

template <class Impl, class R, class C, bool kNoexcept, class... A>
class Hooked<Impl, R (C::*)(A...) const noexcept(kNoexcept)>
    : public detail::HookedForward<Hooked<Impl, R (C::*)(A...) const noexcept(kNoexcept)>, Impl, /*kConst=*/true,
                                   detail::kOmittable<const Impl&, A...>, R, A...> {
  using Base = detail::HookedForward<Hooked, Impl, true, detail::kOmittable<const Impl&, A...>, R, A...>;

 public:
  using Base::Base;
};

/// torch's Sequential has a template for `forward`. This one takes and returns a tensor, so that it can be inside a
/// Sequential or an AnyModule; `forward_as<Result>(inputs…)` is torch's, with hooks.
template <>
class Hooked<torch::nn::SequentialImpl, detail::NoSingleForward>
    : public detail::HookedModule<Hooked<torch::nn::SequentialImpl, detail::NoSingleForward>,
                                  torch::nn::SequentialImpl> {
  using Base = detail::HookedModule<Hooked, torch::nn::SequentialImpl>;

 public:
  using Base::Base;

  at::Tensor forward(at::Tensor input) { return forward_as<at::Tensor>(input); }

  template <class Result, class... Inputs>
  Result forward_as(Inputs... inputs) {
    const auto run = [this](auto&&... input) {
      return this->torch::nn::SequentialImpl::template forward<Result>(std::forward<decltype(input)>(input)...);
    };
    return this->template call<Result>(detail::Types<Inputs...>(), run, inputs...);
  }
};

}  // namespace plimsoll::nn
