#include "plimsoll/fsdp/checkpoint/file_names.h"

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

}  // namespace plimsoll::fsdp
