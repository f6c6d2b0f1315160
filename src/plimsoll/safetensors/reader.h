#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plimsoll/safetensors/header.h"

namespace plimsoll::safetensors {

/// A safetensors file, mapped into memory: a page is read on its first access. If the file is replaced (as Writer
/// does), the old contents stay readable. If another program shortens the file, access raises SIGBUS, as for every
/// mapping. Several threads may use a reader.
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
  /// Throws InvalidArgument for an unknown tensor.
  const TensorInfo& info(std::string_view tensor) const;

  /// The tensor's bytes, valid as long as the reader. Our writer and Hugging Face's align them to the element's size;
  /// the format does not promise alignment.
  std::span<const std::byte> bytes(std::string_view tensor) const;

 private:
  std::filesystem::path file_;
  std::span<const std::byte> mapped_;
  Header header_;
  std::unordered_map<std::string_view, std::size_t> index_;
};

}  // namespace plimsoll::safetensors
