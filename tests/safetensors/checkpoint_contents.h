#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "plimsoll/safetensors/checkpoint_folder.h"
#include "plimsoll/safetensors/file.h"
#include "safetensors/scratch.h"

/// The contents of the tests' checkpoints: files of two ranks, one in its own folder. Every byte differs between steps.

inline void write_rank(const std::filesystem::path& file, unsigned first,
                       plimsoll::safetensors::FileOperations& operations) {
  using namespace plimsoll::safetensors;
  Writer writer(file, {{"w", Dtype::kF32, {5, 3}}, {"empty", Dtype::kU8, {0}}}, {}, operations);
  writer.write("w", counting(20, first));
  writer.write("w", counting(40, first + 20));
  writer.finish();
}

inline void save_checkpoint(plimsoll::safetensors::CheckpointFolder& folder, std::uint64_t step,
                            plimsoll::safetensors::FileOperations& operations) {
  auto pending = folder.begin(step);
  operations.make_folder(folder.pending_path(step) / "rank-1");
  write_rank(pending.path() / "model.safetensors", static_cast<unsigned>(step), operations);
  write_rank(folder.pending_path(step) / "rank-1" / "optimizer.safetensors", static_cast<unsigned>(step) + 100,
             operations);
  const std::filesystem::path text = folder.pending_path(step) / "rank-1" / "step.txt";
  const int file = operations.create(text);
  operations.write_all(file, 0, bytes_of(std::to_string(step)), text);
  operations.close(file);
  pending.commit({{"step", std::to_string(step)}});
}

inline void check_contents(const plimsoll::safetensors::Checkpoint& checkpoint) {
  using plimsoll::safetensors::Reader;
  const auto step = static_cast<unsigned>(checkpoint.manifest.step);
  CHECK(checkpoint.manifest.metadata.at("step") == std::to_string(step));
  CHECK(checkpoint.manifest.files.size() == 3);
  CHECK(contents(checkpoint.path / "rank-1" / "step.txt") == std::to_string(step));
  CHECK(std::ranges::equal(Reader(checkpoint.path / "model.safetensors").bytes("w"), counting(60, step)));
  CHECK(std::ranges::equal(Reader(checkpoint.path / "rank-1" / "optimizer.safetensors").bytes("w"),
                           counting(60, step + 100)));
}
