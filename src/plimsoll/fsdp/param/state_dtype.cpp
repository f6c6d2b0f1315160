#include "plimsoll/fsdp/param/state_dtype.h"

#include <c10/util/Exception.h>

#include <array>

namespace plimsoll::fsdp {
namespace {

// In the order of safetensors::Dtype.
constexpr std::array<at::ScalarType, safetensors::kDtypes> kTorchDtypes = {
    at::kBool,     at::kByte, at::kChar,   at::kFloat8_e5m2, at::kFloat8_e4m3fn, at::kShort, at::kUInt16, at::kHalf,
    at::kBFloat16, at::kInt,  at::kUInt32, at::kFloat,       at::kDouble,        at::kLong,  at::kUInt64};

}  // namespace

safetensors::Dtype to_file_dtype(at::ScalarType dtype, std::string_view tensor) {
  for (std::size_t i = 0; i < kTorchDtypes.size(); ++i) {
    if (kTorchDtypes[i] == dtype) return static_cast<safetensors::Dtype>(i);
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "'", tensor, "' is ", dtype,
      ", which safetensors files cannot hold. Keep it as a real tensor with another dimension.");
}

at::ScalarType to_torch_dtype(safetensors::Dtype dtype) { return kTorchDtypes[static_cast<std::size_t>(dtype)]; }

}  // namespace plimsoll::fsdp
