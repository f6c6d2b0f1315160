#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <set>

#include "plimsoll/pretend/model/machine.h"
#include "plimsoll/pretend/model/object.h"

/// cuFile reads and writes files from device memory without a host copy. Device memory has no contents here: a read
/// only returns the number of bytes; a write puts zeros and counts as a read-back.
namespace plimsoll::pretend::cufile {
namespace {

enum Operation : int {
  kSuccess = 0,
  kDriverNotInitialized = 5001,
  kInvalidValue = 5022,
  kMemoryAlreadyRegistered = 5023,
  kMemoryNotRegistered = 5024,
  kInvalidFileType = 5018,
  kHandleNotRegistered = 5027,
  kInternalError = 5030,
};

struct Error {
  int operation;
  int cuda = 0;
};
static_assert(sizeof(Error) == 8);

struct Description {
  int type;  ///< 1: a file descriptor.
  union {
    int descriptor;
    void* handle;
  };
  const void* file_system;
};
static_assert(sizeof(Description) == 24);

struct File : Object<0x43554649U> {
  int descriptor = -1;
};

using Files = Objects<kHandleNotRegistered, kInvalidValue, kInternalError>;

std::mutex mutex;
std::set<const void*> buffers;
std::atomic<long> opened{0};

/// Removes O_DIRECT from the file temporarily: cuFile accepts any size and offset, but the kernel then only aligned
/// ones.
class Buffered {
 public:
  explicit Buffered(int descriptor) : descriptor_(descriptor), flags_(fcntl(descriptor, F_GETFL)) {
    if (direct()) fcntl(descriptor_, F_SETFL, flags_ & ~O_DIRECT);
  }
  ~Buffered() {
    if (direct()) fcntl(descriptor_, F_SETFL, flags_);
  }
  Buffered(const Buffered&) = delete;
  Buffered& operator=(const Buffered&) = delete;

 private:
  bool direct() const { return flags_ >= 0 && (flags_ & O_DIRECT) != 0; }
  const int descriptor_;
  const int flags_;
};

ssize_t write_zeros(int descriptor, std::size_t bytes, off_t offset) {
  static constexpr char kZeros[1 << 16] = {};
  const Buffered buffered(descriptor);
  std::size_t written = 0;
  while (written < bytes) {
    const ssize_t n =
        pwrite(descriptor, kZeros, std::min(sizeof(kZeros), bytes - written), offset + static_cast<off_t>(written));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    written += static_cast<std::size_t>(n);
  }
  return static_cast<ssize_t>(written);
}

/// Counts a write to a file as a read-back without a destination.
void report_read_back(const void* source, std::size_t bytes) {
  const Event event{.kind = Happening::kReadBack, .name = "cuFileWrite", .bytes = bytes, .source = source};
  machine().enqueue(machine().device(machine().device_of(source).value_or(0)).default_stream, event);
}

}  // namespace
}  // namespace plimsoll::pretend::cufile

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cufile;

PLIMSOLL_API Error cuFileDriverOpen() {
  opened.fetch_add(1, std::memory_order_relaxed);
  return {kSuccess};
}
PLIMSOLL_API Error cuFileDriverClose() {
  if (opened.fetch_sub(1, std::memory_order_relaxed) > 0) return {kSuccess};
  opened.fetch_add(1, std::memory_order_relaxed);
  return {kDriverNotInitialized};
}
PLIMSOLL_API Error cuFileDriverClose_v2() { return cuFileDriverClose(); }
PLIMSOLL_API long cuFileUseCount() { return opened.load(std::memory_order_relaxed); }

PLIMSOLL_API Error cuFileHandleRegister(File** out, const Description* description) {
  constexpr int kFileDescriptor = 1;
  if (out == nullptr || description == nullptr) return {kInvalidValue};
  *out = nullptr;
  struct stat status{};
  if (description->type != kFileDescriptor || fstat(description->descriptor, &status) != 0) return {kInvalidFileType};
  const int made = Files::make(out);
  if (made == kSuccess) (*out)->descriptor = description->descriptor;
  return {made};
}

PLIMSOLL_API void cuFileHandleDeregister(File* file) { Files::destroy(file); }

PLIMSOLL_API Error cuFileBufRegister(const void* base, std::size_t bytes, int /*flags*/) {
  if (base == nullptr || bytes == 0) return {kInvalidValue};
  const std::lock_guard lock(mutex);
  return {guarded(kInternalError, [&] { return buffers.insert(base).second ? kSuccess : kMemoryAlreadyRegistered; })};
}

PLIMSOLL_API Error cuFileBufDeregister(const void* base) {
  const std::lock_guard lock(mutex);
  return {buffers.erase(base) == 1 ? kSuccess : kMemoryNotRegistered};
}

/// Returns the bytes read, -1 with errno for a system error, or a lower cuFile code.
PLIMSOLL_API ssize_t cuFileRead(File* file, void* base, std::size_t bytes, off_t file_offset, off_t buffer_offset) {
  if (!alive(file)) return -kHandleNotRegistered;
  if (base == nullptr || file_offset < 0 || buffer_offset < 0) return -kInvalidValue;
  char* const target = static_cast<char*>(base) + buffer_offset;
  if (is_host(target)) return pread(file->descriptor, target, bytes, file_offset);
  struct stat status{};
  if (fstat(file->descriptor, &status) != 0) return -1;
  const off_t left = std::max<off_t>(status.st_size - file_offset, 0);
  return static_cast<ssize_t>(std::min(bytes, static_cast<std::size_t>(left)));
}

PLIMSOLL_API ssize_t cuFileWrite(File* file, const void* base, std::size_t bytes, off_t file_offset,
                                 off_t buffer_offset) {
  if (!alive(file)) return -kHandleNotRegistered;
  if (base == nullptr || file_offset < 0 || buffer_offset < 0) return -kInvalidValue;
  const char* const source = static_cast<const char*>(base) + buffer_offset;
  if (is_host(source)) return pwrite(file->descriptor, source, bytes, file_offset);
  report_read_back(source, bytes);
  return write_zeros(file->descriptor, bytes, file_offset);
}
