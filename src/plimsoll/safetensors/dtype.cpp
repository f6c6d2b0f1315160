#include "plimsoll/safetensors/dtype.h"

#include <array>
#include <cstddef>

namespace plimsoll::safetensors {
namespace {

struct Entry {
  std::string_view name;
  Bytes bytes;
};

constexpr std::array<Entry, kDtypes> kTable{{{"BOOL", 1},
                                             {"U8", 1},
                                             {"I8", 1},
                                             {"F8_E5M2", 1},
                                             {"F8_E4M3", 1},
                                             {"I16", 2},
                                             {"U16", 2},
                                             {"F16", 2},
                                             {"BF16", 2},
                                             {"I32", 4},
                                             {"U32", 4},
                                             {"F32", 4},
                                             {"F64", 8},
                                             {"I64", 8},
                                             {"U64", 8}}};

const Entry& entry(Dtype dtype) { return kTable.at(static_cast<std::size_t>(dtype)); }

}  // namespace

std::string_view name_of(Dtype dtype) { return entry(dtype).name; }

std::optional<Dtype> dtype_named(std::string_view name) {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].name == name) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

Bytes bytes_per_element(Dtype dtype) { return entry(dtype).bytes; }

std::optional<Bytes> tensor_bytes(Dtype dtype, std::span<const std::int64_t> shape) {
  Bytes product = 1;
  for (const std::int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(product, static_cast<Bytes>(dim), &product)) return std::nullopt;
  }
  if (__builtin_mul_overflow(product, bytes_per_element(dtype), &product)) return std::nullopt;
  return product;
}

}  // namespace plimsoll::safetensors
