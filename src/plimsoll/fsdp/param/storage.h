#pragma once

#include <ATen/core/Tensor.h>

/// The unsharded parameter's storage stays while its memory is freed and allocated again: autograd keeps views of it,
/// and they must see the memory that exists in backward.
namespace plimsoll::fsdp {

/// Allocates memory for the tensor's elements in its storage, if it has none. The contents are undefined. Allocates on
/// the current stream.
void alloc_storage(const at::Tensor& tensor);

/// Frees the memory of the tensor's storage.
void free_storage(const at::Tensor& tensor);

}  // namespace plimsoll::fsdp
