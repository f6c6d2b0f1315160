#include "plimsoll/safetensors/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <random>
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

/// A random name: process numbers repeat, in containers at every start, and the file of a killed process would block
/// the name.
fs::path part_of(const fs::path& file) {
  std::random_device random;
  char token[17];
  std::snprintf(token, sizeof(token), "%08x%08x", random(), random());
  return folder_of(file) / ("." + file.filename().string() + "." + token + ".part");
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

Writer::Writer(fs::path file, std::vector<TensorSpec> tensors, const Metadata& metadata, FileOperations& operations)
    : file_(std::move(file)), part_(part_of(file_)), operations_(operations), tensors_(lay_out(std::move(tensors))) {
  std::error_code error;
  if (!file_.has_filename() || fs::is_directory(file_, error)) {
    throw InvalidArgument("cannot write " + file_.string() + ": it is a folder; name a file in it");
  }
  written_.resize(tensors_.size());
  index_.reserve(tensors_.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) index_.emplace(tensors_[i].name, i);
  const std::string header = encode_header(tensors_, metadata);
  data_begin_ = header.size();
  descriptor_ = operations_.create(part_);
  try {
    operations_.write_all(descriptor_, 0, std::as_bytes(std::span(header)), part_);
  } catch (...) {
    discard();
    throw;
  }
}

Writer::~Writer() { discard(); }

void Writer::discard() noexcept {
  if (descriptor_ < 0) return;
  operations_.close(std::exchange(descriptor_, -1));
  try {
    operations_.remove(part_);
  } catch (...) {
    // The file was removed, or the disk failed: a destructor cannot report it.
  }
}

void Writer::write(std::string_view tensor, std::span<const std::byte> bytes) {
  const std::string subject = file_.string() + ": tensor " + shown(tensor);
  if (descriptor_ < 0) throw InvalidArgument(subject + " comes after finish(); write everything before it");
  const auto found = index_.find(tensor);
  if (found == index_.end()) {
    throw InvalidArgument(subject + " was not declared; name all tensors when you make the writer");
  }
  const TensorInfo& info = tensors_[found->second];
  Bytes& written = written_[found->second];
  if (bytes.size() > info.bytes() - written) {
    throw InvalidArgument(subject + " has " + std::to_string(info.bytes()) + " bytes, and " +
                          std::to_string(bytes.size()) + " were given after " + std::to_string(written));
  }
  operations_.write_all(descriptor_, data_begin_ + info.begin + written, bytes, part_);
  written += bytes.size();
}

void Writer::finish() {
  if (descriptor_ < 0) throw InvalidArgument(file_.string() + " is finished already");
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (written_[i] != tensors_[i].bytes()) {
      throw InvalidArgument(file_.string() + ": of tensor " + shown(tensors_[i].name) + " " +
                            std::to_string(written_[i]) + " bytes of " + std::to_string(tensors_[i].bytes()) +
                            " were written; write the rest before finish()");
    }
  }
  operations_.sync(descriptor_, part_);
  operations_.rename(part_, file_);
  operations_.close(std::exchange(descriptor_, -1));
  operations_.sync_path(folder_of(file_));
}

}  // namespace plimsoll::safetensors
