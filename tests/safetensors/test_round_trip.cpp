#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "plimsoll/safetensors/file.h"
#include "safetensors/scratch.h"

namespace test_round_trip {

using namespace plimsoll;
using namespace plimsoll::safetensors;
namespace fs = std::filesystem;

namespace {

const fs::path kGolden = fs::path(PLIMSOLL_SOURCE_DIR) / "tests/safetensors/golden";
const std::string kOddName = "naïve \"name\"\n\t\x01\x7f/\\";

struct Tensor {
  TensorSpec spec;
  std::vector<std::byte> data;
};

/// What golden/make.py writes, in the order in which it declares them.
std::vector<Tensor> golden_tensors() {
  std::vector<Tensor> tensors;
  for (int i = 0; i < kDtypes; ++i) {
    char name[24];
    std::snprintf(name, sizeof(name), "tensor.%02d", i);
    const Dtype dtype = static_cast<Dtype>(i);
    tensors.push_back(
        {{name, dtype, {2, 3}},
         counting(6 * bytes_per_element(dtype), static_cast<unsigned>(i), dtype == Dtype::kBool ? 2 : 256)});
  }
  tensors.push_back({{"scalar", Dtype::kF32, {}}, counting(4, 100)});
  tensors.push_back({{"empty", Dtype::kBF16, {0, 5}}, {}});
  tensors.push_back({{kOddName, Dtype::kI8, {3}}, counting(3, 101)});
  return tensors;
}

std::vector<TensorSpec> specs_of(const std::vector<Tensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : tensors) specs.push_back(tensor.spec);
  return specs;
}

void write(const fs::path& file, const std::vector<Tensor>& tensors, const Metadata& metadata = {}) {
  Writer writer(file, specs_of(tensors), metadata);
  for (const Tensor& tensor : tensors) writer.write(tensor.spec.name, tensor.data);
  writer.finish();
}

void check_holds(const Reader& reader, const std::vector<Tensor>& tensors) {
  CHECK(reader.tensors().size() == tensors.size());
  for (const Tensor& tensor : tensors) {
    CAPTURE(tensor.spec.name);
    REQUIRE(reader.contains(tensor.spec.name));
    const TensorInfo& info = reader.info(tensor.spec.name);
    CHECK(info.dtype == tensor.spec.dtype);
    CHECK(info.shape == tensor.spec.shape);
    CHECK(std::ranges::equal(reader.bytes(tensor.spec.name), tensor.data));
  }
}

}  // namespace

TEST_CASE("files of Hugging Face's package are read, with all element types, empty tensors and scalars") {
  const Reader reader(kGolden / "every_dtype.safetensors");
  check_holds(reader, golden_tensors());
  CHECK(reader.metadata() == Metadata{{"format", "pt ✓"}});
  const Reader empty(kGolden / "no_tensors.safetensors");
  CHECK(empty.tensors().empty());
  CHECK(empty.metadata().empty());
}

TEST_CASE_FIXTURE(Scratch, "a file of ours has the bytes of Hugging Face's") {
  write(path / "ours.safetensors", golden_tensors(), {{"format", "pt ✓"}});
  CHECK(contents(path / "ours.safetensors") == contents(kGolden / "every_dtype.safetensors"));
  write(path / "empty.safetensors", {});
  CHECK(contents(path / "empty.safetensors") == contents(kGolden / "no_tensors.safetensors"));
}

TEST_CASE_FIXTURE(Scratch, "tensors may be written in any order and in pieces of any length, several at a time") {
  std::vector<Tensor> tensors = golden_tensors();
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    std::shuffle(tensors.begin(), tensors.end(), random);
    Writer writer(path / "ours.safetensors", specs_of(tensors), {{"format", "pt ✓"}});
    std::vector<std::size_t> written(tensors.size());
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        const std::span<const std::byte> rest = std::span(tensors[i].data).subspan(written[i]);
        const std::size_t length = std::min<std::size_t>(rest.size(), random() % 7);
        writer.write(tensors[i].spec.name, rest.first(length));
        written[i] += length;
        more = more || written[i] < tensors[i].data.size();
      }
    }
    writer.finish();
    CHECK(contents(path / "ours.safetensors") == contents(kGolden / "every_dtype.safetensors"));
  }
}

TEST_CASE_FIXTURE(Scratch, "the bytes of every tensor begin at a multiple of its element's size") {
  const std::vector<Tensor> tensors = golden_tensors();
  write(path / "a", tensors);
  const Reader reader(path / "a");
  Bytes end = 0;
  for (const TensorInfo& info : reader.tensors()) {
    CHECK(info.begin == end);
    CHECK(reinterpret_cast<std::uintptr_t>(reader.bytes(info.name).data()) % bytes_per_element(info.dtype) == 0);
    end = info.end;
  }
}

TEST_CASE_FIXTURE(Scratch, "any text of metadata reads back unchanged") {
  const Metadata metadata{{"", "empty key"}, {"empty text", ""}, {"\"\\\n\x01\x7f", "日本 \xF0\x9F\x9A\xA2"}};
  write(path / "a", {}, metadata);
  CHECK(Reader(path / "a").metadata() == metadata);
}

TEST_CASE_FIXTURE(Scratch, "fifty thousand tensors and a header of megabytes are read back") {
  std::vector<Tensor> tensors;
  const std::string prefix(100, 'x');
  for (unsigned i = 0; i < 50'000; ++i) {
    const Dtype dtype = static_cast<Dtype>(i % kDtypes);
    tensors.push_back(
        {{prefix + std::to_string(i), dtype, {1 + i % 2}}, counting(bytes_per_element(dtype) * (1 + i % 2), i)});
  }
  write(path / "many", tensors);
  const Reader reader(path / "many");
  CHECK(fs::file_size(path / "many") > 8'000'000);
  bool equal = reader.tensors().size() == tensors.size();
  for (const Tensor& tensor : tensors) {
    equal = equal && std::ranges::equal(reader.bytes(tensor.spec.name), tensor.data) &&
            reader.info(tensor.spec.name).shape == tensor.spec.shape;
  }
  CHECK(equal);
}

TEST_CASE_FIXTURE(Scratch, "a reader keeps its file when another file takes the name") {
  write(path / "a", {{{"t", Dtype::kU8, {3}}, counting(3, 1)}});
  const Reader before(path / "a");
  write(path / "a", {{{"t", Dtype::kU8, {3}}, counting(3, 9)}});
  CHECK(std::ranges::equal(before.bytes("t"), counting(3, 1)));
  CHECK(std::ranges::equal(Reader(path / "a").bytes("t"), counting(3, 9)));
}

TEST_CASE("the bytes of a shape are counted without overflow") {
  const auto bytes = [](std::vector<std::int64_t> shape) { return tensor_bytes(Dtype::kF64, shape); };
  CHECK(bytes({}) == 8);
  CHECK(bytes({0, INT64_MAX}) == 0);
  CHECK(bytes({2, 3, 5}) == 240);
  CHECK(bytes({std::int64_t{1} << 60, 2}) == std::nullopt);
  CHECK(bytes({INT64_MAX, INT64_MAX, 0}) == std::nullopt);
  CHECK(bytes({-1}) == std::nullopt);
}

}  // namespace test_round_trip
