#include "plimsoll/fsdp/param/storage.h"

#include <c10/core/DeviceGuard.h>

namespace plimsoll::fsdp {

void alloc_storage(const at::Tensor& tensor) {
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  const auto bytes = static_cast<std::size_t>(tensor.numel()) * tensor.itemsize();
  if (storage.nbytes() == bytes) return;
  const c10::OptionalDeviceGuard guard(storage.device());
  storage.set_data_ptr_noswap(storage.allocator()->allocate(bytes));
  storage.set_nbytes(bytes);
}

void free_storage(const at::Tensor& tensor) {
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  if (storage.nbytes() == 0) return;
  storage.set_data_ptr_noswap(at::DataPtr(nullptr, storage.device()));
  storage.set_nbytes(0);
}

}  // namespace plimsoll::fsdp
