#include "plimsoll/safetensors/header.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <utility>

#include "plimsoll/base/errors.h"
#include "plimsoll/safetensors/json.h"

namespace plimsoll::safetensors {
namespace {

struct Entry {
  std::string_view name;
  Bytes bytes;
};

constexpr std::array<Entry, kDtypes> kTable{{{"BOOL", 1},
                                             {"U8", 1},
                                             {"I8", 1},
                                             {"F8_E5M2", 1},
                                             {"F8_E4M3", 1},
                                             {"I16", 2},
                                             {"U16", 2},
                                             {"F16", 2},
                                             {"BF16", 2},
                                             {"I32", 4},
                                             {"U32", 4},
                                             {"F32", 4},
                                             {"F64", 8},
                                             {"I64", 8},
                                             {"U64", 8}}};

const Entry& entry(Dtype dtype) { return kTable.at(static_cast<std::size_t>(dtype)); }

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr Bytes kLengthBytes = 8;
constexpr Bytes kAlignment = 8;

std::string listed(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  return text + "]";
}

std::string known_dtypes() {
  std::string names;
  for (int i = 0; i < kDtypes; ++i) names += (i == 0 ? "" : " ") + std::string(name_of(static_cast<Dtype>(i)));
  return names;
}

std::string decimal(Bytes bytes) { return std::to_string(bytes); }

}  // namespace

std::string_view name_of(Dtype dtype) { return entry(dtype).name; }

std::optional<Dtype> dtype_named(std::string_view name) {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].name == name) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

Bytes bytes_per_element(Dtype dtype) { return entry(dtype).bytes; }

std::optional<Bytes> tensor_bytes(Dtype dtype, std::span<const std::int64_t> shape) {
  Bytes product = 1;
  for (const std::int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(product, static_cast<Bytes>(dim), &product)) return std::nullopt;
  }
  if (__builtin_mul_overflow(product, bytes_per_element(dtype), &product)) return std::nullopt;
  return product;
}

std::vector<TensorInfo> lay_out(std::vector<TensorSpec> tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorSpec& left, const TensorSpec& right) {
    return std::tie(right.dtype, left.name) < std::tie(left.dtype, right.name);
  });
  std::vector<std::string_view> names;
  std::vector<TensorInfo> infos;
  names.reserve(tensors.size());
  infos.reserve(tensors.size());
  Bytes offset = 0;
  for (TensorSpec& spec : tensors) {
    const std::string subject = "tensor " + shown(spec.name);
    if (spec.name == kMetadataKey) {
      throw InvalidArgument(subject + ": the name is reserved for metadata; choose another");
    }
    const std::optional<Bytes> bytes = tensor_bytes(spec.dtype, spec.shape);
    const Bytes begin = offset;
    if (!bytes || __builtin_add_overflow(offset, *bytes, &offset)) {
      throw InvalidArgument(subject + ": no file can hold the shape " + listed(spec.shape) + " of " +
                            std::string(name_of(spec.dtype)) +
                            "; dimensions are not negative, and all bytes together fit 64 bits");
    }
    infos.push_back({std::move(spec.name), spec.dtype, std::move(spec.shape), begin, offset});
    names.push_back(infos.back().name);
  }
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end()) {
    throw InvalidArgument("tensor " + shown(*twice) + " is declared twice; give each tensor a name of its own");
  }
  return infos;
}

std::string encode_header(std::span<const TensorInfo> tensors, const Metadata& metadata) {
  std::string json = "{";
  try {
    if (!metadata.empty()) {
      json += json_string(kMetadataKey) + ":";
      char before = '{';
      for (const auto& [key, value] : metadata) {
        json += before + json_string(key) + ":" + json_string(value);
        before = ',';
      }
      json += "}";
    }
    for (const TensorInfo& tensor : tensors) {
      if (json.size() > 1) json += ",";
      json += json_string(tensor.name) + R"(:{"dtype":")" + std::string(name_of(tensor.dtype)) + R"(","shape":)" +
              listed(tensor.shape) + R"(,"data_offsets":[)" + decimal(tensor.begin) + "," + decimal(tensor.end) + "]}";
    }
  } catch (const FormatError& error) {
    throw InvalidArgument(std::string("names and metadata of a safetensors file are UTF-8: ") + error.what());
  }
  json += "}";
  json.resize(round_up(json.size(), kAlignment), ' ');
  if (json.size() > kMaximumHeaderBytes) {
    throw InvalidArgument("the header of a safetensors file has at most " + decimal(kMaximumHeaderBytes) +
                          " bytes, and " + decimal(tensors.size()) + " tensors with their metadata need " +
                          decimal(json.size()) + "; spread them over several files");
  }
  std::string bytes;
  bytes.reserve(kLengthBytes + json.size());
  for (Bytes i = 0; i < kLengthBytes; ++i) bytes += static_cast<char>(Bytes{json.size()} >> (8 * i));
  return bytes + json;
}

namespace {

/// Fills a Header from the JSON and checks each value alone. The tensors' ranges are checked later.
class HeaderVisitor : public JsonVisitor {
 public:
  explicit HeaderVisitor(Header& header) : header_(header) {}

  void open(const Path& path, Kind kind) override {
    if (path.size() <= 1 && kind != Kind::kObject) wrong(path, "an array");
    if (path.size() == 1 && !in_metadata(path)) {
      header_.tensors.emplace_back().name = path[0];
      found_ = {};
    }
    if (path.size() < 2 || passed_over(path)) return;
    const bool array = path.size() == 2 && !in_metadata(path) && path[1] != "dtype" && kind == Kind::kArray;
    if (!array) wrong(path, kind == Kind::kArray ? "an array" : "an object");
    (path[1] == "shape" ? found_.shape : found_.offsets) = true;
  }

  void close(const Path& path) override {
    if (path.size() == 2 && !passed_over(path) && path[1] == "data_offsets" && !in_metadata(path) &&
        found_.numbers != 2) {
      throw FormatError(subject(path) + "data_offsets must be two numbers, found " + decimal(found_.numbers));
    }
    if (path.size() == 1 && !in_metadata(path)) complete(path);
  }

  void text(const Path& path, std::string& text) override {
    if (path.size() == 2 && in_metadata(path)) {
      header_.metadata.emplace(path[1], std::move(text));
    } else if (path.size() == 2 && path[1] == "dtype") {
      const std::optional<Dtype> dtype = dtype_named(text);
      if (!dtype) {
        throw FormatError(subject(path) + "the dtype " + shown(text) + " is unknown; known are: " + known_dtypes());
      }
      header_.tensors.back().dtype = *dtype;
      found_.dtype = true;
    } else if (!passed_over(path)) {
      wrong(path, "a text");
    }
  }

  void number(const Path& path, std::uint64_t value) override {
    if (passed_over(path)) return;
    const bool listed = path.size() == 3 && !in_metadata(path);
    if (!listed) wrong(path, "a number");
    TensorInfo& tensor = header_.tensors.back();
    if (path[1] == "shape") {
      if (value > static_cast<std::uint64_t>(INT64_MAX)) {
        throw FormatError(subject(path) + "the dimension " + decimal(value) + " is too large");
      }
      tensor.shape.push_back(static_cast<std::int64_t>(value));
    } else {
      if (found_.numbers == 0) tensor.begin = value;
      if (found_.numbers == 1) tensor.end = value;
      ++found_.numbers;
    }
  }

  void other(const Path& path, const std::string& what) override {
    // Hugging Face's reader accepts null as absent metadata.
    if (passed_over(path) || (path.size() == 1 && in_metadata(path) && what == "null")) return;
    wrong(path, what);
  }

 private:
  struct Found {
    bool dtype = false;
    bool shape = false;
    bool offsets = false;
    std::size_t numbers = 0;
  };

  static bool in_metadata(const Path& path) { return !path.empty() && path[0] == kMetadataKey; }
  static bool passed_over(const Path& path) {
    return path.size() >= 2 && !in_metadata(path) && path[1] != "dtype" && path[1] != "shape" &&
           path[1] != "data_offsets";
  }
  static std::string subject(const Path& path) { return "tensor " + shown(path[0]) + ": "; }

  [[noreturn]] static void wrong(const Path& path, const std::string& found) {
    if (path.empty()) throw FormatError("the header must be a JSON object, found " + found);
    if (in_metadata(path)) {
      const std::string which = path.size() == 1 ? "" : " of " + shown(path[1]);
      throw FormatError(std::string(kMetadataKey) + ": must be " +
                        (path.size() == 1 ? "an object" : "a text for each key") + ", found " + found + which);
    }
    if (path.size() == 1) throw FormatError(subject(path) + "must be an object, found " + found);
    const std::string expected = path[1] == "dtype" ? "a text" : path.size() == 2 ? "an array" : "whole numbers";
    throw FormatError(subject(path) + path[1] + " must be " + expected + ", found " + found);
  }

  void complete(const Path& path) const {
    const char* missing = !found_.dtype     ? "dtype"
                          : !found_.shape   ? "shape"
                          : !found_.offsets ? "data_offsets"
                                            : nullptr;
    if (missing != nullptr) throw FormatError(subject(path) + "has no " + missing);
  }

  Header& header_;
  Found found_;  // For the last tensor.
};

/// Checks that each byte belongs to exactly one tensor. `data_bytes`: the size after the header.
void check_places(std::vector<TensorInfo>& tensors, Bytes data_bytes) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& left, const TensorInfo& right) {
    return std::tie(left.begin, left.end, left.name) < std::tie(right.begin, right.end, right.name);
  });
  Bytes covered = 0;
  for (const TensorInfo& tensor : tensors) {
    const std::string subject = "tensor " + shown(tensor.name) + ": ";
    const std::string offsets = "data_offsets [" + decimal(tensor.begin) + "," + decimal(tensor.end) + "] ";
    if (tensor.end < tensor.begin) throw FormatError(subject + offsets + "end before they begin");
    if (tensor.begin < covered) {
      throw FormatError(subject + offsets + "overlap those of another tensor, which end at " + decimal(covered));
    }
    if (tensor.begin > covered) {
      throw FormatError(subject + offsets + "leave a hole: the tensor before ends at " + decimal(covered));
    }
    const std::optional<Bytes> needed = tensor_bytes(tensor.dtype, tensor.shape);
    const std::string what = listed(tensor.shape) + " of " + std::string(name_of(tensor.dtype));
    if (!needed) throw FormatError(subject + "the shape " + what + " is too large");
    if (*needed != tensor.bytes()) {
      throw FormatError(subject + offsets + "hold " + decimal(tensor.bytes()) + " bytes, and the shape " + what +
                        " needs " + decimal(*needed));
    }
    if (tensor.end > data_bytes) {
      throw FormatError(subject + offsets + "lie outside the file, which has " + decimal(data_bytes) +
                        " bytes after its header: it is cut off");
    }
    covered = tensor.end;
  }
  if (covered != data_bytes) {
    throw FormatError("its tensors end at byte " + decimal(covered) + " of the data, and " +
                      decimal(data_bytes - covered) + " bytes follow that belong to no tensor");
  }
}

Header decode(std::span<const std::byte> file) {
  if (file.size() < kLengthBytes) {
    throw FormatError("it has " + decimal(file.size()) + " bytes, and a safetensors file at least " +
                      decimal(kLengthBytes) + ": it is cut off, or not a safetensors file");
  }
  Bytes length = 0;
  for (Bytes i = 0; i < kLengthBytes; ++i) length |= static_cast<Bytes>(file[i]) << (8 * i);
  if (length > kMaximumHeaderBytes) {
    throw FormatError("its header would have " + decimal(length) + " bytes, and at most " +
                      decimal(kMaximumHeaderBytes) + " are allowed: it is not a safetensors file, or damaged");
  }
  const std::span<const std::byte> rest = file.subspan(kLengthBytes);
  if (length > rest.size()) {
    throw FormatError("its header should have " + decimal(length) + " bytes, and " + decimal(rest.size()) +
                      " exist: it is cut off");
  }
  const std::string_view json(reinterpret_cast<const char*>(rest.data()), length);
  if (!json.starts_with('{')) throw FormatError("its header does not begin with '{': it is not a safetensors file");
  Header header;
  header.data_begin = kLengthBytes + length;
  HeaderVisitor visitor(header);
  read_json(json, visitor);
  check_places(header.tensors, file.size() - header.data_begin);
  return header;
}

}  // namespace

Header decode_header(std::span<const std::byte> file, const std::string& origin) {
  try {
    return decode(file);
  } catch (const FormatError& error) {
    throw FormatError(origin + ": " + error.what());
  }
}

}  // namespace plimsoll::safetensors
