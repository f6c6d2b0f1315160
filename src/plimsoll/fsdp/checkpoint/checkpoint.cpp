#include "plimsoll/fsdp/checkpoint/checkpoint.h"

#include <string>

#include "plimsoll/fsdp/checkpoint/exchange.h"

namespace plimsoll::fsdp {

using safetensors::CheckpointFolder;

void save_checkpoint(const std::filesystem::path& folder, std::uint64_t step, ModuleRef module,
                     const nn::Optimizer* optimizer, const CheckpointOptions& options) {
  constexpr std::string_view kDoing = "save_checkpoint";
  CheckpointFolder checkpoints(folder, {.keep = options.keep, .operations = options.operations});
  std::optional<safetensors::PendingCheckpoint> pending;  // Removes the written files if anything throws.
  fail_together(kDoing, defect_of([&] {
                  if (is_main_rank()) pending.emplace(checkpoints.begin(step));
                }));
  const SaveOptions save{
      .form = options.form, .max_file_bytes = options.max_file_bytes, .metadata = {}, .operations = options.operations};
  save_state(module, checkpoints.pending_path(step), save);
  if (optimizer != nullptr) save_optimizer_state(module, *optimizer, checkpoints.pending_path(step), save);
  // All ranks have finished their files: the calls above end together.
  fail_together(kDoing, defect_of([&] {
                  if (pending) pending->commit(options.metadata);
                }));
}

std::optional<LoadedCheckpoint> load_checkpoint(const std::filesystem::path& folder, ModuleRef module,
                                                nn::Optimizer* optimizer, const LoadCheckpointOptions& options) {
  constexpr std::string_view kDoing = "load_checkpoint";
  const CheckpointFolder checkpoints(folder);
  std::string chosen;
  fail_together(kDoing, defect_of([&] {
                  const auto newest = options.step ? checkpoints.at(*options.step) : checkpoints.newest();
                  if (newest) chosen = std::to_string(newest->manifest.step);
                }));
  chosen = from_main_rank(chosen, kDoing);
  if (chosen.empty()) return std::nullopt;
  LoadedCheckpoint loaded{};
  fail_together(kDoing, defect_of([&] {
                  const auto checkpoint = checkpoints.at(std::stoull(chosen));
                  loaded = {checkpoint.manifest.step, checkpoint.manifest.metadata};
                  load_state(module, checkpoint.path, {.strict = options.strict});
                  if (optimizer != nullptr) load_optimizer_state(module, *optimizer, checkpoint.path);
                }));
  return loaded;
}

}  // namespace plimsoll::fsdp
