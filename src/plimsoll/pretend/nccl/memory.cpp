#include <cstdint>

#include "plimsoll/pretend/model/machine.h"
#include "plimsoll/pretend/nccl/communicator.h"

/// Memory that NCCL allocates or registers. Registration takes no device memory: it maps existing memory into the
/// address spaces of peers, which do not exist here.
namespace plimsoll::pretend::nccl {
namespace {

/// The result of ncclCommRegister and ncclCommWindowRegister.
struct Registration : Object<0x4e434352U> {
  void* address = nullptr;
  std::size_t bytes = 0;
};
using Registrations = Objects<kInvalidArgument, kInvalidArgument, kSystemError>;

}  // namespace
}  // namespace plimsoll::pretend::nccl

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::nccl;

PLIMSOLL_API int ncclMemAlloc(void** out, std::size_t bytes) {
  if (out == nullptr) return fail(kInvalidArgument, "the pointer to the address is null");
  *out = nullptr;
  if (bytes == 0) return kSuccess;
  const auto address = machine().device(current_device()).memory.allocate(bytes);
  if (!address.has_value()) return fail(kUnhandledCudaError, "Cuda failure 2 'out of memory': %zu bytes", bytes);
  *out = reinterpret_cast<void*>(*address);
  return kSuccess;
}

PLIMSOLL_API int ncclMemFree(void* pointer) {
  if (pointer == nullptr) return kSuccess;
  const auto device = machine().device_of(pointer);
  if (!device.has_value() || !machine().device(*device).memory.free(reinterpret_cast<Address>(pointer))) {
    return fail(kInvalidArgument, "%p was not allocated by ncclMemAlloc", pointer);
  }
  return kSuccess;
}

PLIMSOLL_API int ncclCommRegister(Communicator* communicator, void* address, std::size_t bytes, Registration** out) {
  if (!alive(communicator) || out == nullptr) return fail(kInvalidArgument, "not a communicator");
  if (address == nullptr || bytes == 0) return fail(kInvalidArgument, "nothing to register");
  if (Registrations::make(out, Registration{{}, address, bytes}) == kSuccess) return kSuccess;
  return fail(kSystemError, "out of host memory");
}
PLIMSOLL_ALIAS(ncclCommWindowRegister, ncclCommRegister);

PLIMSOLL_API int ncclCommDeregister(Communicator* communicator, Registration* registration) {
  if (!alive(communicator)) return fail(kInvalidArgument, "not a communicator");
  if (!alive(registration)) return fail(kInvalidArgument, "not a registration");
  return Registrations::destroy(registration);
}
PLIMSOLL_ALIAS(ncclCommWindowDeregister, ncclCommDeregister);
