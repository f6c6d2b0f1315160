#include "plimsoll/fsdp/checkpoint/source.h"

#include <ATen/Functions.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "plimsoll/base/errors.h"
#include "plimsoll/fsdp/checkpoint/file_format.h"

namespace plimsoll::fsdp {
namespace {

// A tensor over the mapped bytes. Read-only.
at::Tensor view_of(const safetensors::Reader& reader, const std::string& name) {
  const auto& info = reader.info(name);
  const auto bytes = reader.bytes(name);
  const auto options = at::TensorOptions().dtype(to_torch_dtype(info.dtype));
  const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % options.dtype().itemsize() == 0;
  void* const data = const_cast<std::byte*>(bytes.data());
  if (aligned) return at::from_blob(data, info.shape, options);
  const auto flat = at::from_blob(data, {static_cast<std::int64_t>(bytes.size())}, at::kByte).clone();
  return flat.view(options.dtype().toScalarType()).view(info.shape);
}

struct Overlap {
  std::int64_t start;
  std::int64_t length;
};

Overlap overlap(std::int64_t a_start, std::int64_t a_length, std::int64_t b_start, std::int64_t b_length) {
  const auto start = std::max(a_start, b_start);
  return {start, std::max<std::int64_t>(0, std::min(a_start + a_length, b_start + b_length) - start)};
}

}  // namespace

CheckpointSource::CheckpointSource(const std::filesystem::path& path, const std::string& stem) : path_(path) {
  if (std::filesystem::is_directory(path)) {
    add_folder(stem);
  } else if (path.extension() == ".json") {
    add_index(path);
  } else {
    add(path);
  }
}

void CheckpointSource::add_folder(const std::string& stem) {
  const CheckpointFiles files = find_checkpoint_files(path_, stem);
  if (files.index) return add_index(*files.index);
  if (files.whole) return add(*files.whole);
  if (files.of_ranks.empty()) {
    throw InvalidArgument(path_.string() + " holds no state: expected " + stem + ".safetensors, " + stem +
                          ".safetensors.index.json or " + stem +
                          "-rank-….safetensors in it. Folders of checkpoints (step-…) are for load_checkpoint.");
  }
  if (files.worlds.size() > 1) {
    throw FormatError(path_.string() + " holds the files of two world sizes, -of-" + *files.worlds.begin() +
                      " and -of-" + *files.worlds.rbegin() + ": remove one set");
  }
  for (const auto& file : files.of_ranks) add(file);
}

void CheckpointSource::add_index(const std::filesystem::path& index) {
  for (const std::string& file : files_of_index(index)) add(index.parent_path() / file);
}

void CheckpointSource::add(const std::filesystem::path& file) {
  readers_.push_back(std::make_unique<safetensors::Reader>(file));
  const safetensors::Reader& reader = *readers_.back();
  for (const auto& info : reader.tensors()) add_tensor(reader, info);
}

void CheckpointSource::add_tensor(const safetensors::Reader& reader, const safetensors::TensorInfo& info) {
  ShardNote note{info.shape, 0, 0};
  const auto text = reader.metadata().find(shard_note_key(info.name));
  if (text != reader.metadata().end()) {
    note = decode_shard_note(text->second, info.shape, reader.file().string() + ": '" + info.name + "'");
  }
  const auto dtype = to_torch_dtype(info.dtype);
  Entry& entry = entries_.try_emplace(info.name, Entry{note.sizes, dtype, {}}).first->second;
  if (entry.sizes != note.sizes || entry.dtype != dtype) {
    throw FormatError(reader.file().string() + ": '" + info.name + "' has another shape or dtype than in " +
                      entry.pieces.front().reader->file().string() + ": the files are not of one save");
  }
  const auto length = info.shape.empty() ? 1 : info.shape[static_cast<std::size_t>(note.dim)];
  entry.pieces.push_back({&reader, note.dim, note.start, length});
}

std::vector<WholeTensor> CheckpointSource::tensors() const {
  std::vector<WholeTensor> tensors;
  for (const auto& [name, entry] : entries_) tensors.push_back({name, entry.sizes, entry.dtype});
  return tensors;
}

const std::vector<std::int64_t>* CheckpointSource::sizes(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second.sizes;
}

void CheckpointSource::read(const std::string& name, std::int64_t dim, std::int64_t start,
                            const at::Tensor& into) const {
  const at::NoGradGuard no_grad;
  const Entry& entry = entries_.at(name);
  if (entry.sizes.empty()) {
    into.copy_(view_of(*entry.pieces.front().reader, name));
    return;
  }
  if (into.numel() == 0) return;
  // How much of the piece's own dimension is there; overlapping pieces (replicas) are read once.
  const auto piece_dim = entry.pieces.front().dim;
  const auto along = piece_dim == dim ? into.size(dim) : entry.sizes[static_cast<std::size_t>(piece_dim)];
  const auto first = piece_dim == dim ? start : 0;
  auto pieces = entry.pieces;
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.start < b.start; });
  auto next = first;
  for (const Piece& piece : pieces) {
    TORCH_CHECK(piece.dim == piece_dim, path_.string(), ": '", name, "' is split along dimension ", piece_dim, " in ",
                entry.pieces.front().reader->file().string(), " and along ", piece.dim, " in ",
                piece.reader->file().string(), ": the files are not of one save");
    const auto common = overlap(piece.start, piece.length, next, first + along - next);
    if (common.length == 0 || common.start != next) continue;
    at::Tensor from = view_of(*piece.reader, name).narrow(piece_dim, common.start - piece.start, common.length);
    if (piece_dim != dim) from = from.narrow(dim, start, into.size(dim));
    into.narrow(piece_dim, common.start - first, common.length).copy_(from);
    next = common.start + common.length;
  }
  TORCH_CHECK(next == first + along, path_.string(), ": the part of '", name, "' from ", next, " on, along dimension ",
              piece_dim, " of ", at::IntArrayRef(entry.sizes),
              ", is in none of the files. Copy the files of all ranks into the folder.");
}

}  // namespace plimsoll::fsdp
