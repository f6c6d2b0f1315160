#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/fsdp/checkpoint/stored_tensor.h"
#include "plimsoll/safetensors/reader.h"

namespace plimsoll::fsdp {

/// State in safetensors files, whole or in shards, as one table of whole tensors. The files are mapped: what is not
/// read takes no memory, and a shard is read from wherever its pieces are, however many ranks wrote them.
class StateSource {
 public:
  /// `path` is one file, an index (model.safetensors.index.json), or a folder with, in this order of preference:
  ///
  ///     STEM.safetensors.index.json           and the files that it names, as Hugging Face splits large models
  ///     STEM.safetensors
  ///     STEM-rank-00000-of-00008.safetensors  and the others that are there
  ///
  /// Throws InvalidArgument where there is none of them, FormatError where a file is damaged or files contradict each
  /// other.
  StateSource(const std::filesystem::path& path, const std::string& stem);

  const std::filesystem::path& path() const { return path_; }
  /// By name.
  std::vector<WholeTensor> tensors() const;
  /// Null where there is none.
  const std::vector<std::int64_t>* sizes(const std::string& name) const;

  /// Fills `into` with the part of the tensor that begins at `start` along `dim` and has its length; casts and copies
  /// to its device as needed. Throws where a piece is in none of the files. REQUIRES: it has the tensor, in that shape.
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
