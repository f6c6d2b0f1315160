#include "plimsoll/safetensors/manifest.h"

#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "plimsoll/base/errors.h"
#include "plimsoll/safetensors/json.h"

namespace plimsoll::safetensors {
namespace {

namespace fs = std::filesystem;

/// `{` newline, one `"key": value` per line, `}`, so that people can read manifests.
template <class Map, class Render>
std::string object_of(const Map& map, Render render) {
  std::string text = "{";
  for (const auto& [key, value] : map) {
    text += (text.size() > 1 ? ",\n    " : "\n    ") + json_string(key) + ": " + render(value);
  }
  return text + (map.empty() ? "}" : "\n  }");
}

class ManifestVisitor : public JsonVisitor {
 public:
  Manifest take() {
    if (!version_) throw FormatError("it has no format_version");
    if (!step_) throw FormatError("it has no step");
    if (!files_) throw FormatError("it has no files");
    manifest_.step = *step_;
    return std::move(manifest_);
  }

  void open(const Path& path, Kind kind) override {
    const bool section = path.size() == 1 && (path[0] == "files" || path[0] == "metadata");
    const bool known = path.empty() || section;
    if ((known && kind != Kind::kObject) || (!known && !passed_over(path))) wrong(path);
    if (section && path[0] == "files") files_ = true;
  }

  void text(const Path& path, std::string& text) override {
    if (path.size() == 2 && path[0] == "metadata") {
      manifest_.metadata.emplace(path[1], std::move(text));
    } else if (!passed_over(path)) {
      wrong(path);
    }
  }

  void number(const Path& path, std::uint64_t number) override {
    if (path.size() == 2 && path[0] == "files") {
      check_inside(path[1]);
      manifest_.files.emplace(path[1], number);
    } else if (path.size() == 1 && path[0] == "step") {
      step_ = number;
    } else if (path.size() == 1 && path[0] == "format_version") {
      if (number != kManifestVersion) {
        throw FormatError("it has version " + std::to_string(number) +
                          " of the format, and this program reads version " + std::to_string(kManifestVersion));
      }
      version_ = true;
    } else if (!passed_over(path)) {
      wrong(path);
    }
  }

  void other(const Path& path, const std::string&) override {
    if (!passed_over(path)) wrong(path);
  }

 private:
  /// A field that a later writer of the same version may add.
  static bool passed_over(const Path& path) {
    return !path.empty() && path[0] != "files" && path[0] != "metadata" && path[0] != "step" &&
           path[0] != "format_version";
  }

  static void check_inside(const std::string& file) {
    const fs::path path(file);
    bool inside = !file.empty() && path.is_relative();
    for (const fs::path& part : path) inside = inside && part != "..";
    if (!inside) throw FormatError("the file " + shown(file) + " lies outside the checkpoint");
  }

  [[noreturn]] static void wrong(const Path& path) {
    throw FormatError(path.empty() ? "it is not a JSON object" : "its " + shown(path[0]) + " has the wrong type");
  }

  Manifest manifest_;
  bool version_ = false;
  bool files_ = false;
  std::optional<std::uint64_t> step_;
};

}  // namespace

std::string encode_manifest(const Manifest& manifest) {
  try {
    return "{\n  \"format_version\": " + std::to_string(kManifestVersion) +
           ",\n  \"step\": " + std::to_string(manifest.step) +
           ",\n  \"files\": " + object_of(manifest.files, [](Bytes bytes) { return std::to_string(bytes); }) +
           ",\n  \"metadata\": " +
           object_of(manifest.metadata, [](const std::string& text) { return json_string(text); }) + "\n}\n";
  } catch (const FormatError& error) {
    throw InvalidArgument(std::string("file names and metadata of a checkpoint are UTF-8: ") + error.what());
  }
}

Manifest decode_manifest(std::string_view text) {
  ManifestVisitor visitor;
  read_json(text, visitor);
  return visitor.take();
}

Manifest read_manifest(const fs::path& folder) {
  const std::string subject = "the checkpoint " + folder.string() + " is not complete: ";
  std::ifstream stream(folder / kManifestFile, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) throw FormatError(subject + std::string(kManifestFile) + " is missing or cannot be read");
  Manifest manifest;
  try {
    manifest = decode_manifest(text.str());
  } catch (const FormatError& error) {
    throw FormatError(subject + std::string(kManifestFile) + ": " + error.what());
  }
  for (const auto& [file, bytes] : manifest.files) {
    std::error_code error;
    const bool there = fs::is_regular_file(folder / file, error);
    const Bytes found = there ? fs::file_size(folder / file, error) : 0;
    if (!there || error) throw FormatError(subject + "its file " + shown(file) + " is missing");
    if (found != bytes) {
      throw FormatError(subject + "its file " + shown(file) + " should have " + std::to_string(bytes) +
                        " bytes, and has " + std::to_string(found));
    }
  }
  return manifest;
}

}  // namespace plimsoll::safetensors
