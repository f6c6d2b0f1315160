#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plimsoll/safetensors/header.h"

namespace plimsoll::safetensors {

/// A safetensors file, mapped into memory: pages are read when their bytes are looked at. A file that is replaced (as
/// Writer does) stays readable as it was; one that is cut short by somebody else while it is mapped raises SIGBUS, as
/// for every mapping. May be used by several threads.
class Reader {
 public:
  /// Throws SystemError if the file cannot be read, InvalidArgument if it is not a regular file, FormatError as
  /// decode_header.
  explicit Reader(std::filesystem::path file);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  const std::filesystem::path& file() const { return file_; }
  /// In the order of their bytes.
  const std::vector<TensorInfo>& tensors() const { return header_.tensors; }
  const Metadata& metadata() const { return header_.metadata; }

  bool contains(std::string_view tensor) const { return index_.contains(tensor); }
  /// Throws InvalidArgument where there is no such tensor.
  const TensorInfo& info(std::string_view tensor) const;

  /// Its bytes, valid as long as the reader. In files of ours and Hugging Face's they begin at a multiple of the
  /// element's size; the format does not promise it.
  std::span<const std::byte> bytes(std::string_view tensor) const;

 private:
  std::filesystem::path file_;
  std::span<const std::byte> mapped_;
  Header header_;
  std::unordered_map<std::string_view, std::size_t> index_;
};

}  // namespace plimsoll::safetensors
