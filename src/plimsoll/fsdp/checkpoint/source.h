#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/fsdp/checkpoint/stored_tensor.h"
#include "plimsoll/safetensors/file.h"

namespace plimsoll::fsdp {

/// State in safetensors files, whole or sharded, as one table of whole tensors. The files are mapped: tensors that are
/// not read take no memory. A shard is read from the files that have its pieces, for any number of writing ranks.
class CheckpointSource {
 public:
  /// `path` is one file, an index (model.safetensors.index.json), or a folder with, in this order of preference:
  ///
  ///     STEM.safetensors.index.json           and the files that it names (Hugging Face's form for large models)
  ///     STEM.safetensors
  ///     STEM-rank-00000-of-00008.safetensors  and the files of the other ranks
  ///
  /// Throws InvalidArgument if the folder has none of them, FormatError if a file is damaged or files contradict each
  /// other.
  CheckpointSource(const std::filesystem::path& path, const std::string& stem);

  const std::filesystem::path& path() const { return path_; }
  /// In order of name.
  std::vector<WholeTensor> tensors() const;
  /// Null if the name is unknown.
  const std::vector<std::int64_t>* sizes(const std::string& name) const;

  /// Fills `into` with the part of the tensor that begins at `start` along `dim` and has the length of `into`; casts
  /// and copies to its device if necessary. Throws if no file has a piece. REQUIRES: the tensor is known, with that
  /// shape.
  void read(const std::string& name, std::int64_t dim, std::int64_t start, const at::Tensor& into) const;

 private:
  struct Piece {
    const safetensors::Reader* reader;
    std::int64_t dim;
    std::int64_t start;
    std::int64_t length;
  };
  struct Entry {
    std::vector<std::int64_t> sizes;
    at::ScalarType dtype;
    std::vector<Piece> pieces;
  };
  void add(const std::filesystem::path& file);
  void add_tensor(const safetensors::Reader& reader, const safetensors::TensorInfo& info);
  void add_folder(const std::string& stem);
  void add_index(const std::filesystem::path& index);

  std::filesystem::path path_;
  std::vector<std::unique_ptr<safetensors::Reader>> readers_;
  std::map<std::string, Entry> entries_;
};

}  // namespace plimsoll::fsdp
