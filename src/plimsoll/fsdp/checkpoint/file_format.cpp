#include "plimsoll/fsdp/checkpoint/file_format.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <regex>

#include "plimsoll/base/errors.h"
#include "plimsoll/safetensors/json.h"

namespace plimsoll::fsdp {
namespace {

std::string numbered(const std::string& stem, const char* between, int number, int of) {
  char text[48];
  std::snprintf(text, sizeof text, "%s%05d-of-%05d.safetensors", between, number, of);
  return stem + text;
}

class IndexVisitor final : public safetensors::JsonVisitor {
 public:
  void open(const Path&, Kind) override {}
  void close(const Path&) override {}
  void text(const Path& path, std::string& text) override {
    if (path.size() != 2 || path[0] != "weight_map") return;
    if (text.empty() || text.find('/') != std::string::npos || text == "..") {
      throw FormatError(safetensors::shown(path[1]) + " is in " + safetensors::shown(text) +
                        ", which is not the name of a file beside the index");
    }
    files.insert(std::move(text));
  }
  void number(const Path&, std::uint64_t) override {}
  void other(const Path&, const std::string&) override {}

  std::set<std::string> files;
};

class NoteVisitor final : public safetensors::JsonVisitor {
 public:
  void open(const Path& path, Kind kind) override {
    if (path.empty() ? kind != Kind::kObject : path != Path{"shape"} || kind != Kind::kArray) refuse();
  }
  void close(const Path&) override {}
  void text(const Path&, std::string&) override { refuse(); }
  void number(const Path& path, std::uint64_t number) override {
    const auto value = static_cast<std::int64_t>(number);
    if (value < 0) refuse();
    if (path == Path{"shape", "[]"}) {
      note.sizes.push_back(value);
    } else if (path == Path{"dim"}) {
      note.dim = value;
    } else if (path == Path{"start"}) {
      note.start = value;
    } else {
      refuse();
    }
  }
  void other(const Path&, const std::string&) override { refuse(); }

  [[noreturn]] static void refuse() { throw FormatError(R"(expected {"shape": […], "dim": …, "start": …})"); }

  ShardNote note;
};

std::string joined(const std::vector<std::int64_t>& sizes) {
  std::string text;
  for (const auto size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return text;
}

bool fits(const ShardNote& note, const std::vector<std::int64_t>& part) {
  const auto dim = static_cast<std::size_t>(note.dim);
  if (dim >= note.sizes.size() || part.size() != note.sizes.size()) return false;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (i != dim && part[i] != note.sizes[i]) return false;
  }
  return note.start <= note.sizes[dim] && part[dim] <= note.sizes[dim] - note.start;
}

}  // namespace

std::string whole_file_name(const std::string& stem) { return stem + ".safetensors"; }
std::string index_file_name(const std::string& stem) { return stem + ".safetensors.index.json"; }
std::string part_file_name(const std::string& stem, int part, int of) { return numbered(stem, "-", part, of); }
std::string rank_file_name(const std::string& stem, int rank, int of) { return numbered(stem, "-rank-", rank, of); }

CheckpointFiles find_checkpoint_files(const std::filesystem::path& folder, const std::string& stem) {
  CheckpointFiles files;
  const std::regex numbered_name("-(rank-)?\\d+-of-(\\d+)\\.safetensors");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    std::smatch match;
    if (name == index_file_name(stem)) {
      files.index = entry.path();
    } else if (name == whole_file_name(stem)) {
      files.whole = entry.path();
    } else if (name.starts_with(stem)) {
      const std::string rest = name.substr(stem.size());
      if (!std::regex_match(rest, match, numbered_name)) continue;
      (match[1].matched ? files.of_ranks : files.parts).push_back(entry.path());
      if (match[1].matched) files.worlds.insert(match[2]);
    }
  }
  std::sort(files.of_ranks.begin(), files.of_ranks.end());
  std::sort(files.parts.begin(), files.parts.end());
  return files;
}

std::set<std::string> files_of_index(const std::filesystem::path& index) {
  std::ifstream file(index, std::ios::binary);
  if (!file) throw InvalidArgument("cannot read " + index.string());
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  IndexVisitor visitor;
  try {
    safetensors::read_json(text, visitor);
  } catch (const FormatError& error) {
    throw FormatError(index.string() + ": " + error.what());
  }
  if (visitor.files.empty()) {
    throw FormatError(index.string() + R"(: expected {"weight_map": {"name": "file", …}}, found no file in it)");
  }
  return visitor.files;
}

std::string shard_note_key(const std::string& tensor) { return "shard." + tensor; }

std::string encode_shard_note(const ShardNote& note) {
  return "{\"shape\": [" + joined(note.sizes) + "], \"dim\": " + std::to_string(note.dim) +
         ", \"start\": " + std::to_string(note.start) + "}";
}

ShardNote decode_shard_note(const std::string& text, const std::vector<std::int64_t>& part, const std::string& origin) {
  NoteVisitor visitor;
  try {
    safetensors::read_json(text, visitor);
  } catch (const FormatError& error) {
    throw FormatError(origin + ": the position of a shard, " + safetensors::shown(text) +
                      ", cannot be read: " + error.what());
  }
  if (!fits(visitor.note, part)) {
    throw FormatError(origin + ": a shard of shape [" + joined(part) + "] does not fit its position, " +
                      safetensors::shown(text));
  }
  return visitor.note;
}

}  // namespace plimsoll::fsdp
