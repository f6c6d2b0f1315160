#include <cstdint>
#include <new>

#include "plimsoll/pretend/model/library_call.h"
#include "plimsoll/pretend/model/machine.h"
#include "plimsoll/pretend/nccl/communicator.h"

/// Memory that NCCL allocates or registers. Registration takes no device memory: it maps existing memory into the
/// address spaces of peers, which do not exist here.
namespace plimsoll::pretend::nccl {
namespace {

/// The result of ncclCommRegister and ncclCommWindowRegister.
struct Registration {
  static constexpr std::uint32_t kAlive = 0x4e434352U;
  std::uint32_t magic = kAlive;
  void* address;
  std::size_t bytes;
};

int register_range(Communicator* communicator, void* address, std::size_t bytes, Registration** out) {
  if (live(communicator) == nullptr || out == nullptr) return fail(kInvalidArgument, "not a communicator");
  if (address == nullptr || bytes == 0) return fail(kInvalidArgument, "nothing to register");
  *out = new (std::nothrow) Registration{Registration::kAlive, address, bytes};
  return *out == nullptr ? fail(kSystemError, "out of host memory") : static_cast<int>(kSuccess);
}

int deregister_range(Communicator* communicator, Registration* registration) {
  if (live(communicator) == nullptr) return fail(kInvalidArgument, "not a communicator");
  if (registration == nullptr || registration->magic != Registration::kAlive) {
    return fail(kInvalidArgument, "not a registration");
  }
  registration->magic = 0;
  delete registration;
  return kSuccess;
}

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
  return register_range(communicator, address, bytes, out);
}
PLIMSOLL_API int ncclCommDeregister(Communicator* communicator, Registration* registration) {
  return deregister_range(communicator, registration);
}
PLIMSOLL_API int ncclCommWindowRegister(Communicator* communicator, void* address, std::size_t bytes,
                                        Registration** out, int /*flags*/) {
  return register_range(communicator, address, bytes, out);
}
PLIMSOLL_API int ncclCommWindowDeregister(Communicator* communicator, Registration* registration) {
  return deregister_range(communicator, registration);
}
