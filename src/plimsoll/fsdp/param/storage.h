#pragma once

#include <ATen/core/Tensor.h>

/// The unsharded parameter's storage lives on while its memory comes and goes: autograd keeps views of it, and they
/// must see the memory that is there at backward.
namespace plimsoll::fsdp {

/// Gives the tensor's storage memory for its elements, unless it has that already. The contents are undefined.
/// Like an allocation: on the current stream.
void alloc_storage(const at::Tensor& tensor);

/// Takes the memory of the tensor's storage away.
void free_storage(const at::Tensor& tensor);

}  // namespace plimsoll::fsdp
