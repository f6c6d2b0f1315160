#include "plimsoll/fsdp/checkpoint/shard_note.h"

#include "plimsoll/base/errors.h"
#include "plimsoll/safetensors/json.h"

namespace plimsoll::fsdp {
namespace {

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

bool fits(const ShardNote& note, const std::vector<std::int64_t>& part) {
  const auto dim = static_cast<std::size_t>(note.dim);
  if (dim >= note.sizes.size() || part.size() != note.sizes.size()) return false;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (i != dim && part[i] != note.sizes[i]) return false;
  }
  return note.start <= note.sizes[dim] && part[dim] <= note.sizes[dim] - note.start;
}

}  // namespace

std::string shard_note_key(const std::string& tensor) { return "shard." + tensor; }

std::string encode_shard_note(const ShardNote& note) {
  std::string sizes;
  for (const auto size : note.sizes) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  return "{\"shape\": [" + sizes + "], \"dim\": " + std::to_string(note.dim) +
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
    std::string sizes;
    for (const auto size : part) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    throw FormatError(origin + ": a shard of shape [" + sizes + "] does not fit its position, " +
                      safetensors::shown(text));
  }
  return visitor.note;
}

}  // namespace plimsoll::fsdp
