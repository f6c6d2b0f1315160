#include "plimsoll/fsdp/checkpoint/files.h"

#include <ATen/Functions.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/errors.h"
#include "plimsoll/fsdp/checkpoint/exchange.h"
#include "plimsoll/fsdp/checkpoint/file_format.h"
#include "plimsoll/fsdp/checkpoint/stored_tensor.h"
#include "plimsoll/safetensors/file.h"
#include "plimsoll/safetensors/json.h"

namespace plimsoll::fsdp {
namespace {

using safetensors::TensorSpec;
using safetensors::Writer;
using Path = std::filesystem::path;

struct Destination {
  Path folder;
  std::string stem;
  const SaveOptions& options;

  safetensors::FileOperations& operations() const {
    return options.operations ? *options.operations : safetensors::posix_file_operations();
  }
  // transformers requires the format.
  safetensors::Metadata metadata() const {
    auto metadata = options.metadata;
    metadata.try_emplace("format", "pt");
    return metadata;
  }
};

void write(Writer& writer, const std::string& name, const at::Tensor& tensor) {
  const at::Tensor host = tensor.cpu().contiguous();
  writer.write(name, std::as_bytes(std::span(static_cast<const char*>(host.const_data_ptr()), host.nbytes())));
}

TensorSpec spec_of(const StoredTensor& entry, at::IntArrayRef sizes) {
  return {entry.name, to_file_dtype(entry.local.scalar_type(), entry.name), sizes.vec()};
}

// Makes the folder. Throws if it has files that a reader would prefer to those that are about to be written.
void prepare(const Destination& to, const std::vector<std::string>& names) {
  to.operations().make_folders(to.folder);
  CheckpointFiles files = find_checkpoint_files(to.folder, to.stem);
  if (files.index) files.parts.push_back(*files.index);
  if (files.whole) files.parts.push_back(*files.whole);
  files.parts.insert(files.parts.end(), files.of_ranks.begin(), files.of_ranks.end());
  for (const Path& file : files.parts) {
    if (std::find(names.begin(), names.end(), file.filename()) != names.end()) continue;
    throw InvalidArgument(file.string() + " is from another save and would be mixed up with this one (" +
                          names.front() + "): remove it, or save into another folder");
  }
}

/// Writes the files of a full state while its tensors arrive.
class FullWriter {
 public:
  FullWriter(const Destination& to, const StoredTensors& state) : to_(to) {
    std::vector<std::vector<TensorSpec>> files(1);
    Bytes in_file = 0;
    for (const StoredTensor& entry : state) {
      TensorSpec spec = spec_of(entry, entry.sizes);
      const Bytes bytes = safetensors::tensor_bytes(spec.dtype, spec.shape).value_or(0);
      if (!files.back().empty() && in_file + bytes > to.options.max_file_bytes) {
        files.emplace_back();
        in_file = 0;
      }
      in_file += bytes;
      total_ += bytes;
      files.back().push_back(std::move(spec));
    }
    const int count = static_cast<int>(files.size());
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) {
      names.push_back(count == 1 ? whole_file_name(to.stem) : part_file_name(to.stem, i + 1, count));
    }
    auto expected = names;
    if (count > 1) expected.push_back(index_file_name(to.stem));
    prepare(to, expected);
    for (int i = 0; i < count; ++i) {
      auto& specs = files[static_cast<std::size_t>(i)];
      for (const TensorSpec& spec : specs) file_of_[spec.name] = {names[static_cast<std::size_t>(i)], writers_.size()};
      writers_.push_back(std::make_unique<Writer>(to.folder / names[static_cast<std::size_t>(i)], std::move(specs),
                                                  to.metadata(), to.operations()));
    }
  }

  void write(const std::string& name, const at::Tensor& whole) {
    fsdp::write(*writers_[file_of_.at(name).second], name, whole);
  }

  void finish() {
    for (const auto& writer : writers_) writer->finish();
    if (writers_.size() > 1) write_index();
  }

 private:
  void write_index() {
    std::string text = "{\n  \"metadata\": {\"total_size\": " + std::to_string(total_) + "},\n  \"weight_map\": {";
    const char* before = "\n";
    for (const auto& [name, file] : file_of_) {
      text += before + ("    " + safetensors::json_string(name)) + ": " + safetensors::json_string(file.first);
      before = ",\n";
    }
    text += "\n  }\n}\n";
    const Path index = to_.folder / index_file_name(to_.stem),
               part = to_.folder / ("." + index_file_name(to_.stem) + ".part");
    auto& operations = to_.operations();
    operations.remove_tree(part);
    operations.write_file(part, text);
    operations.rename(part, index);
    operations.sync_path(to_.folder);
  }

  const Destination& to_;
  std::vector<std::unique_ptr<Writer>> writers_;
  std::map<std::string, std::pair<std::string, std::size_t>> file_of_;
  Bytes total_ = 0;
};

void save_full(const StoredTensors& state, const Destination& to, std::string_view doing) {
  std::unique_ptr<FullWriter> writer;
  auto defect = defect_of([&] {
    if (is_main_rank()) writer = std::make_unique<FullWriter>(to, state);
  });
  fail_together(doing, defect);
  for (const StoredTensor& entry : state) {
    const at::Tensor whole = gather(entry);
    // If rank 0 fails, it still gathers: the other ranks do not know yet.
    if (whole.defined() && !defect) defect = defect_of([&] { writer->write(entry.name, whole); });
  }
  if (writer && !defect) defect = defect_of([&] { writer->finish(); });
  fail_together(doing, defect);
}

// True if this rank's file has the tensor. One replica writes the shards; rank 0 writes tensors that all ranks have. An
// empty whole tensor is written once, so that it is not missing.
bool is_written(const StoredTensor& entry) {
  if (!entry.is_sharded()) return is_main_rank();
  const auto& replicas = entry.mesh_info->replicate_process_group;
  if (replicas && (*replicas)->getRank() != 0) return false;
  return entry.local.numel() > 0 || (entry.mesh_info->shard_mesh_rank == 0 && c10::multiply_integers(entry.sizes) == 0);
}

void write_shards(const StoredTensors& state, const Destination& to) {
  std::vector<TensorSpec> specs;
  auto metadata = to.metadata();
  for (const StoredTensor& entry : state) {
    if (!is_written(entry)) continue;
    specs.push_back(spec_of(entry, entry.local.sizes()));
    if (!entry.is_sharded()) continue;
    metadata[shard_note_key(entry.name)] = encode_shard_note({entry.sizes, entry.dim, entry.start});
  }
  if (specs.empty() && !is_main_rank()) return;  // Rank 0 writes a file even if it is empty.
  Writer writer(to.folder / rank_file_name(to.stem, own_rank(), rank_count()), std::move(specs), metadata,
                to.operations());
  for (const StoredTensor& entry : state) {
    if (is_written(entry)) write(writer, entry.name, entry.local);
  }
  writer.finish();
}

void save_sharded(const StoredTensors& state, const Destination& to, std::string_view doing) {
  fail_together(doing, defect_of([&] {
                  if (!is_main_rank()) return;
                  std::vector<std::string> names;
                  for (int rank = 0; rank < rank_count(); ++rank) {
                    names.push_back(rank_file_name(to.stem, rank, rank_count()));
                  }
                  prepare(to, names);
                }));
  fail_together(doing, defect_of([&] { write_shards(state, to); }));
}

void save(const StoredTensors& state, const Destination& to, std::string_view doing) {
  require_same_names(doing, state);
  to.options.form == CheckpointForm::kFull ? save_full(state, to, doing) : save_sharded(state, to, doing);
}

}  // namespace

void save_state(ModuleRef module, const Path& folder, const SaveOptions& options) {
  save(model_state(module), {folder, "model", options}, "save_state");
}

void save_optimizer_state(ModuleRef module, const nn::Optimizer& optimizer, const Path& folder,
                          const SaveOptions& options) {
  save(optimizer_state(module, optimizer), {folder, "optimizer", options}, "save_optimizer_state");
}

}  // namespace plimsoll::fsdp
