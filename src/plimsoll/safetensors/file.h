#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plimsoll/safetensors/file_operations.h"
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

/// Writes a safetensors file piece by piece; needs memory only for the header:
///
///     Writer writer("model.safetensors", {{"weight", Dtype::kF32, {2, 3}}, {"bias", Dtype::kF32, {3}}});
///     writer.write("weight", std::as_bytes(std::span(weight)));
///     writer.write("bias", std::as_bytes(std::span(bias)));
///     writer.finish();
///
/// Until finish() returns, the file does not exist or has its old contents. Bytes go to a hidden file beside it
/// (`.model.safetensors.….part`). The destructor of an unfinished writer removes the hidden file; a killed process
/// leaves it. Elements are little-endian, in row-major order. One thread at a time.
class Writer {
 public:
  /// Throws SystemError if the file cannot be written, and as lay_out and encode_header.
  /// REQUIRES: `operations` outlives the writer.
  Writer(std::filesystem::path file, std::vector<TensorSpec> tensors, const Metadata& metadata = {},
         FileOperations& operations = posix_file_operations());
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// All tensors in the order of their bytes in the file, the fastest order for writing. Any order works.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }

  /// Writes the next bytes of a tensor: all of them, or a piece of any length. Each call is a system call, so pieces of
  /// a few MiB are best. Throws InvalidArgument for a tensor that was not declared, for too many bytes and for a
  /// finished writer; SystemError if the disk is full.
  void write(std::string_view tensor, std::span<const std::byte> bytes);

  /// Syncs the file to the disk and gives it its name.
  /// Throws InvalidArgument that names a tensor with missing bytes.
  void finish();

 private:
  void discard() noexcept;

  std::filesystem::path file_;
  std::filesystem::path part_;
  FileOperations& operations_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string_view, std::size_t> index_;
  std::vector<Bytes> written_;  // Of each tensor.
  Bytes data_begin_ = 0;
  int descriptor_ = -1;  // -1: finished.
};

}  // namespace plimsoll::safetensors
