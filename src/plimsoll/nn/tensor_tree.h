#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <concepts>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace plimsoll::nn {

/// Finds the tensors in a value of type T: a tensor, or optionals, vectors, arrays, pairs, tuples and maps (their
/// values) of tensors, nested to any depth. `kHasTensors` is false for all other types, whose values are ignored.
///
/// A user's struct can specialise this:
///
///     template <>
///     struct plimsoll::nn::TensorTree<Output> {
///       static constexpr bool kHasTensors = true;
///       template <class Visitor>
///       static void visit(Output& output, Visitor&& visitor) { visitor(output.logits); }
///     };
template <class T>
struct TensorTree {
  static constexpr bool kHasTensors = false;
};

template <class T>
inline constexpr bool has_tensors = TensorTree<std::remove_cvref_t<T>>::kHasTensors;

/// Calls visitor(at::Tensor&) for each tensor of the value, in order.
template <class T, class Visitor>
void visit_tensors(T& value, Visitor&& visitor) {
  if constexpr (has_tensors<T>) TensorTree<T>::visit(value, visitor);
}

template <std::derived_from<at::Tensor> T>
struct TensorTree<T> {
  static constexpr bool kHasTensors = true;
  template <class Visitor>
  static void visit(at::Tensor& tensor, Visitor&& visitor) {
    visitor(tensor);
  }
};

template <class T>
struct TensorTree<std::optional<T>> {
  static constexpr bool kHasTensors = has_tensors<T>;
  template <class Visitor>
  static void visit(std::optional<T>& value, Visitor&& visitor) {
    if (value) visit_tensors(*value, visitor);
  }
};

namespace detail {
template <class Range, class T>
struct RangeTree {
  static constexpr bool kHasTensors = has_tensors<T>;
  template <class Visitor>
  static void visit(Range& range, Visitor&& visitor) {
    for (T& value : range) visit_tensors(value, visitor);
  }
};

template <class Map, class T>
struct MapTree {
  static constexpr bool kHasTensors = has_tensors<T>;
  template <class Visitor>
  static void visit(Map& map, Visitor&& visitor) {
    for (auto& entry : map) visit_tensors(entry.second, visitor);
  }
};

template <class Tuple, class... T>
struct TupleTree {
  static constexpr bool kHasTensors = (has_tensors<T> || ...);
  template <class Visitor>
  static void visit(Tuple& tuple, Visitor&& visitor) {
    std::apply([&](auto&... value) { (visit_tensors(value, visitor), ...); }, tuple);
  }
};
}  // namespace detail

template <class T, class Allocator>
struct TensorTree<std::vector<T, Allocator>> : detail::RangeTree<std::vector<T, Allocator>, T> {};
template <class Allocator>
struct TensorTree<std::vector<bool, Allocator>> {
  static constexpr bool kHasTensors = false;
};
template <class T, std::size_t kSize>
struct TensorTree<std::array<T, kSize>> : detail::RangeTree<std::array<T, kSize>, T> {};
template <class... Rest, class Key, class T>
struct TensorTree<std::map<Key, T, Rest...>> : detail::MapTree<std::map<Key, T, Rest...>, T> {};
template <class... Rest, class Key, class T>
struct TensorTree<std::unordered_map<Key, T, Rest...>> : detail::MapTree<std::unordered_map<Key, T, Rest...>, T> {};
template <class First, class Second>
struct TensorTree<std::pair<First, Second>> : detail::TupleTree<std::pair<First, Second>, First, Second> {};
template <class... T>
struct TensorTree<std::tuple<T...>> : detail::TupleTree<std::tuple<T...>, T...> {};

}  // namespace plimsoll::nn
