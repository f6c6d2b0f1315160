#include "plimsoll/safetensors/reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "plimsoll/base/errors.h"
#include "plimsoll/safetensors/json.h"

namespace plimsoll::safetensors {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& file, int error) { throw SystemError("cannot read " + file.string(), error); }

void unmap(std::span<const std::byte> mapped) {
  if (!mapped.empty()) munmap(const_cast<std::byte*>(mapped.data()), mapped.size());
}

std::span<const std::byte> map(const fs::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(file, errno);
  struct stat status = {};
  const bool known = fstat(descriptor, &status) == 0;
  const std::size_t length = static_cast<std::size_t>(status.st_size);
  const bool regular = known && S_ISREG(status.st_mode);
  // An empty file cannot be mapped; decode_header refuses the empty span.
  void* address = nullptr;
  if (regular && length > 0) address = mmap(nullptr, length, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int error = errno;
  ::close(descriptor);
  if (!regular) throw InvalidArgument("cannot read " + file.string() + ": it is not a regular file");
  if (address == MAP_FAILED) fail(file, error);
  return {static_cast<const std::byte*>(address), length};
}

}  // namespace

Reader::Reader(fs::path file) : file_(std::move(file)), mapped_(map(file_)) {
  try {
    header_ = decode_header(mapped_, file_.string());
    index_.reserve(header_.tensors.size());
    for (std::size_t i = 0; i < header_.tensors.size(); ++i) index_.emplace(header_.tensors[i].name, i);
  } catch (...) {
    unmap(mapped_);
    throw;
  }
}

Reader::~Reader() { unmap(mapped_); }

const TensorInfo& Reader::info(std::string_view tensor) const {
  const auto found = index_.find(tensor);
  if (found == index_.end()) {
    throw InvalidArgument(file_.string() + " has no tensor " + shown(tensor) + " among its " +
                          std::to_string(header_.tensors.size()));
  }
  return header_.tensors[found->second];
}

std::span<const std::byte> Reader::bytes(std::string_view tensor) const {
  const TensorInfo& found = info(tensor);
  return mapped_.subspan(header_.data_begin + found.begin, found.bytes());
}

}  // namespace plimsoll::safetensors
