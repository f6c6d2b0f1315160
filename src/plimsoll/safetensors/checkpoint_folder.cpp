#include "plimsoll/safetensors/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "plimsoll/base/errors.h"

namespace plimsoll::safetensors {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kPart = ".part";
constexpr std::string_view kRemoved = ".removed";

std::string name_of(std::uint64_t step) {
  char name[32];
  std::snprintf(name, sizeof(name), "step-%08llu", static_cast<unsigned long long>(step));
  return name;
}

fs::path hidden(const fs::path& folder, std::uint64_t step, std::string_view ending) {
  return folder / ("." + name_of(step) + std::string(ending));
}

std::optional<std::uint64_t> step_named(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::uint64_t step = 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  return name_of(step) == name ? std::optional(step) : std::nullopt;
}

bool is_leftover(std::string_view name) {
  if (!name.starts_with('.')) return false;
  for (const std::string_view ending : {kPart, kRemoved}) {
    if (name.ends_with(ending) && step_named(name.substr(1, name.size() - 1 - ending.size()))) return true;
  }
  return false;
}

/// Sorted by name, so that every run has the same order. Empty if the folder does not exist.
std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    entries.push_back(*entry);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw SystemError("cannot list " + folder.string(), error.value());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::vector<std::uint64_t> steps_in(const fs::path& folder) {
  std::vector<std::uint64_t> steps;
  for (const fs::directory_entry& entry : entries_of(folder)) {
    const std::optional<std::uint64_t> step = step_named(entry.path().filename().string());
    if (step && entry.is_directory()) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

Checkpoint read(const fs::path& folder, std::uint64_t step) {
  const fs::path path = folder / name_of(step);
  Manifest manifest = read_manifest(path);
  if (manifest.step != step) {
    throw FormatError("the checkpoint " + path.string() + " has a manifest of step " + std::to_string(manifest.step) +
                      "; it was renamed");
  }
  return {path, std::move(manifest)};
}

bool is_complete(const fs::path& folder, std::uint64_t step) {
  try {
    read(folder, step);
    return true;
  } catch (const FormatError&) {
    return false;
  }
}

/// Syncs all of `folder` to the disk: files first, then the folders that contain them.
void sync_and_list(const fs::path& folder, const fs::path& root, FileOperations& operations, Manifest& manifest) {
  for (const fs::directory_entry& entry : entries_of(folder)) {
    const std::string name = entry.path().filename().string();
    const auto refuse = [&](const std::string& why) {
      throw InvalidArgument("cannot commit the checkpoint of step " + std::to_string(manifest.step) + ": " +
                            entry.path().string() + " " + why);
    };
    if (name.starts_with('.') && name.ends_with(kPart)) {
      refuse("is still being written; finish every rank's files before commit()");
    }
    if (entry.is_symlink() || !(entry.is_directory() || entry.is_regular_file())) {
      refuse("is neither a file nor a folder");
    }
    if (entry.is_directory()) {
      sync_and_list(entry.path(), root, operations, manifest);
    } else {
      const std::string within = entry.path().lexically_relative(root).generic_string();
      if (within == kManifestFile) refuse("has the name of the manifest, which commit() writes; choose another");
      operations.sync_path(entry.path());
      manifest.files.emplace(within, entry.file_size());
    }
  }
  if (folder != root) operations.sync_path(folder);
}

/// Removes checkpoints older than the newest `keep` complete ones. Each is renamed first, and the rename is synced
/// before its files are removed: a folder with a checkpoint's name is never half removed.
void prune(const fs::path& folder, std::size_t keep, FileOperations& operations) {
  const std::vector<std::uint64_t> steps = steps_in(folder);
  std::size_t complete = 0;
  auto oldest = steps.end();  // The oldest that stays.
  while (oldest != steps.begin() && complete < keep) complete += is_complete(folder, *--oldest) ? 1 : 0;
  std::vector<fs::path> removed;
  for (auto step = steps.begin(); step != oldest; ++step) {
    removed.push_back(hidden(folder, *step, kRemoved));
    operations.rename(folder / name_of(*step), removed.back());
  }
  if (removed.empty()) return;
  operations.sync_path(folder);
  for (const fs::path& path : removed) operations.remove_tree(path);
}

}  // namespace

CheckpointFolder::CheckpointFolder(fs::path folder, CheckpointFolderOptions options)
    : folder_(std::move(folder)), options_(options) {
  if (options_.keep == 0) {
    throw InvalidArgument("a checkpoint folder keeps at least 1 checkpoint, and keep is 0");
  }
  if (options_.operations == nullptr) options_.operations = &posix_file_operations();
}

std::optional<Checkpoint> CheckpointFolder::newest() const {
  const std::vector<std::uint64_t> steps = steps_in(folder_);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    try {
      return read(folder_, *step);
    } catch (const FormatError&) {
      // An older checkpoint may be complete.
    }
  }
  return std::nullopt;
}

Checkpoint CheckpointFolder::at(std::uint64_t step) const {
  std::error_code error;
  if (!fs::is_directory(folder_ / name_of(step), error)) {
    throw InvalidArgument(folder_.string() + " has no checkpoint of step " + std::to_string(step));
  }
  return read(folder_, step);
}

std::vector<std::uint64_t> CheckpointFolder::steps() const { return steps_in(folder_); }

fs::path CheckpointFolder::pending_path(std::uint64_t step) const { return hidden(folder_, step, kPart); }

PendingCheckpoint CheckpointFolder::begin(std::uint64_t step) {
  if (const std::optional<Checkpoint> last = newest(); last && last->manifest.step >= step) {
    throw InvalidArgument("cannot begin a checkpoint of step " + std::to_string(step) + ": " + last->path.string() +
                          " exists; remove it and all later ones to go back");
  }
  options_.operations->make_folders(folder_);
  for (const fs::directory_entry& entry : entries_of(folder_)) {
    if (is_leftover(entry.path().filename().string())) options_.operations->remove_tree(entry.path());
  }
  return PendingCheckpoint(folder_, step, options_);
}

PendingCheckpoint::PendingCheckpoint(fs::path folder, std::uint64_t step, const CheckpointFolderOptions& options)
    : folder_(std::move(folder)), step_(step), options_(options), path_(hidden(folder_, step_, kPart)) {
  options_.operations->make_folder(path_);
  pending_ = true;
}

PendingCheckpoint::PendingCheckpoint(PendingCheckpoint&& other) noexcept
    : folder_(std::move(other.folder_)),
      step_(other.step_),
      options_(other.options_),
      path_(std::move(other.path_)),
      pending_(std::exchange(other.pending_, false)) {}

PendingCheckpoint::~PendingCheckpoint() {
  if (!pending_) return;
  try {
    options_.operations->remove_tree(path_);
  } catch (...) {
    // The next begin() meets the same error and reports it.
  }
}

void PendingCheckpoint::commit(const Metadata& metadata) {
  if (!pending_) {
    throw InvalidArgument("the checkpoint of step " + std::to_string(step_) + " is committed already; begin another");
  }
  FileOperations& operations = *options_.operations;
  const fs::path target = folder_ / name_of(step_);
  Manifest manifest{.step = step_, .files = {}, .metadata = metadata};
  sync_and_list(path_, path_, operations, manifest);
  operations.write_file(path_ / kManifestFile, encode_manifest(manifest));
  operations.sync_path(path_);
  if (std::error_code error; fs::exists(fs::symlink_status(target, error))) {
    operations.rename(target, hidden(folder_, step_, kRemoved));  // It is incomplete, or begin() had refused.
  }
  operations.rename(path_, target);
  pending_ = false;
  operations.sync_path(folder_);
  operations.remove_tree(hidden(folder_, step_, kRemoved));
  prune(folder_, options_.keep, operations);
}

}  // namespace plimsoll::safetensors
