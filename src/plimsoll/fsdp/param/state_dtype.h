#pragma once

#include <c10/core/ScalarType.h>

#include <string_view>

#include "plimsoll/safetensors/dtype.h"

namespace plimsoll::fsdp {

/// Throws, with the tensor's name, for dtypes that safetensors files cannot have (complex, quantised).
safetensors::Dtype to_file_dtype(at::ScalarType dtype, std::string_view tensor);
at::ScalarType to_torch_dtype(safetensors::Dtype dtype);

}  // namespace plimsoll::fsdp
