// State files: their names, splitting, reading in pieces, and errors for files that do not fit.

#include <doctest/doctest.h>

#include <numeric>
#include <span>

#include "fsdp/checkpoint_training.h"
#include "nn/error_text.h"
#include "plimsoll/base/errors.h"
#include "plimsoll/fsdp/checkpoint/file_format.h"
#include "plimsoll/fsdp/checkpoint/files.h"
#include "plimsoll/fsdp/checkpoint/full_state.h"
#include "plimsoll/fsdp/checkpoint/source.h"
#include "plimsoll/fsdp/checkpoint/stored_tensor.h"
#include "plimsoll/safetensors/file.h"

using namespace checkpoint_tests;

namespace {

void write_file(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

/// A file of floats; each tensor's values begin at its number.
void write_tensors(const std::filesystem::path& path, const std::vector<safetensors::TensorSpec>& specs,
                   const safetensors::Metadata& metadata = {}) {
  safetensors::Writer writer(path, specs, metadata);
  float first = 0;
  for (const auto& spec : specs) {
    std::vector<float> values(static_cast<std::size_t>(c10::multiply_integers(spec.shape)));
    std::iota(values.begin(), values.end(), first);
    first += 100;
    writer.write(spec.name, std::as_bytes(std::span(values)));
  }
  writer.finish();
}

using safetensors::Dtype;

}  // namespace

TEST_CASE("a large full state is split as Hugging Face splits it, and loads again") {
  const Folder folder;
  ranks::on_ranks(2, [=](const ranks::Rank& rank) {
    join_for_training(rank);
    Training<scenarios::GPTCase> training(Case("model=gpt")), other(Case("model=gpt"), 50);
    fsdp::save_state(training.model, folder.path(), {.max_file_bytes = 4000, .metadata = {{"run", "a"}}});
    fsdp::load_state(other.model, folder.path());
    CHECK(same(other.shards(), training.shards()));
    fsdp::load_state(other.model, folder.path() / "model.safetensors.index.json");
    distributed::destroy_process_group();
  });
  const auto files = fsdp::find_checkpoint_files(folder.path(), "model");
  REQUIRE(files.index.has_value());
  CHECK(!files.whole.has_value());
  REQUIRE(files.parts.size() >= 3);
  const int count = static_cast<int>(files.parts.size());
  for (int i = 0; i < count; ++i) {
    const auto& part = files.parts[static_cast<std::size_t>(i)];
    CHECK(part.filename().string() == fsdp::part_file_name("model", i + 1, count));
    const safetensors::Reader reader(part);
    CHECK(reader.metadata() == safetensors::Metadata{{"format", "pt"}, {"run", "a"}});
    Bytes bytes = 0;
    for (const auto& tensor : reader.tensors()) bytes += tensor.bytes();
    CHECK((bytes <= 4000 || reader.tensors().size() == 1));
  }
  CHECK(fsdp::files_of_index(*files.index).size() == files.parts.size());
  const std::string index = contents(*files.index);
  CHECK(contains(index, "\"tokens.weight\": \"model-00001-of-"));
  CHECK(contains(index, "{\n  \"metadata\": {\"total_size\": "));
  folder.remove();
}

TEST_CASE("one replica writes, one file per rank; ranks without a shard write nothing") {
  const Folder folder;
  ranks::on_ranks(4, [=](const ranks::Rank& rank) {
    join_for_training(rank);
    Training<scenarios::NetworkCase> training(Case("model=network hsdp=2"));
    fsdp::save_state(training.model, folder.path() / "hsdp", {.form = fsdp::CheckpointForm::kSharded});
    scenarios::Network narrow(2, std::vector<int>{2}, 2, false, false);  // Two rows: two ranks have nothing.
    fsdp::fully_shard(narrow, {.mesh = distributed::DeviceMesh::init(at::kCPU, {4})});
    fsdp::save_state(narrow, folder.path() / "narrow", {.form = fsdp::CheckpointForm::kSharded});
    distributed::destroy_process_group();
  });
  const auto names_in = [&](const char* below) {
    std::vector<std::string> names;
    for (const auto& path : fsdp::find_checkpoint_files(folder.path() / below, "model").of_ranks) {
      names.push_back(path.filename());
    }
    return names;
  };
  const std::vector<std::string> expected = {"model-rank-00000-of-00004.safetensors",
                                             "model-rank-00001-of-00004.safetensors"};
  CHECK(names_in("hsdp") == expected);
  CHECK(names_in("narrow") == expected);
  const safetensors::Reader reader(folder.path() / "hsdp" / expected[1]);
  CHECK(reader.info("head.weight").shape == std::vector<std::int64_t>{1, 17});
  CHECK(reader.metadata().at("shard.head.weight") == R"({"shape": [3, 17], "dim": 0, "start": 2})");
  folder.remove();
}

TEST_CASE("any part of a tensor is read from the pieces that cover it") {
  const Folder folder;
  const auto note = [](std::int64_t dim, std::int64_t start) {
    return safetensors::Metadata{{"shard.w", fsdp::encode_shard_note({{4, 3}, dim, start})}};
  };
  const auto whole = at::arange(12, at::kFloat).view({4, 3});
  write_tensors(folder.path() / "model-rank-00000-of-00002.safetensors", {{"w", Dtype::kF32, {3, 3}}}, note(0, 0));
  {  // Rows 2 and 3: one of them is in both.
    safetensors::Writer writer(folder.path() / "model-rank-00001-of-00002.safetensors", {{"w", Dtype::kF32, {2, 3}}},
                               note(0, 2));
    const std::vector<float> values = {6, 7, 8, 9, 10, 11};
    writer.write("w", std::as_bytes(std::span(values)));
    writer.finish();
  }
  const fsdp::CheckpointSource source(folder.path(), "model");
  REQUIRE(source.tensors().size() == 1);
  CHECK(*source.sizes("w") == std::vector<std::int64_t>{4, 3});
  CHECK((source.sizes("v") == nullptr));
  for (std::int64_t dim = 0; dim < 2; ++dim) {
    for (std::int64_t start = 0; start < whole.size(dim); ++start) {
      for (std::int64_t length = 0; start + length <= whole.size(dim); ++length) {
        const auto expected = whole.narrow(dim, start, length);
        const auto found = at::empty(expected.sizes(), at::kDouble);
        source.read("w", dim, start, found);
        CHECK(at::equal(found, expected.to(at::kDouble)));
      }
    }
  }
  std::filesystem::remove(folder.path() / "model-rank-00001-of-00002.safetensors");
  const fsdp::CheckpointSource partly(folder.path(), "model");
  partly.read("w", 0, 0, at::empty({3, 3}));
  CHECK(contains(error_text([&] { partly.read("w", 0, 1, at::empty({3, 3})); }),
                 ": the part of 'w' from 3 on, along dimension 0 of [4, 3], is in none of the files. Copy the files of "
                 "all ranks into the folder."));
  folder.remove();
}

TEST_CASE("invalid and contradictory files are errors that name the file") {
  const Folder folder;
  const auto path = folder.path();
  const auto open = [&] { fsdp::CheckpointSource(path, "model"); };
  CHECK(contains(error_text(open),
                 " holds no state: expected model.safetensors, model.safetensors.index.json or "
                 "model-rank-….safetensors in it."));
  write_tensors(path / "model-rank-00000-of-00002.safetensors", {{"w", Dtype::kF32, {2}}});
  write_tensors(path / "model-rank-00001-of-00002.safetensors", {{"w", Dtype::kF32, {3}}});
  CHECK(contains(error_text(open), "model-rank-00001-of-00002.safetensors: 'w' has another shape or dtype than in "));
  write_tensors(path / "model-rank-00001-of-00002.safetensors", {{"w", Dtype::kF32, {1, 2}}},
                {{"shard.w", R"({"shape": [1, 3], "dim": 1, "start": 2})"}});
  CHECK(contains(error_text(open), "'w': a shard of shape [1, 2] does not fit its position, "));
  write_tensors(path / "model-rank-00001-of-00002.safetensors", {{"w", Dtype::kF32, {2}}}, {{"shard.w", "[2]"}});
  CHECK(contains(error_text(open), "cannot be read: expected {\"shape\": […], \"dim\": …, \"start\": …}"));
  write_tensors(path / "model-rank-00002-of-00004.safetensors", {{"w", Dtype::kF32, {2}}});
  CHECK(contains(error_text(open), " holds the files of two world sizes, -of-00002 and -of-00004: remove one set"));

  write_file(path / "model.safetensors.index.json", R"({"weight_map": {"w": "../w.safetensors"}})");
  CHECK(contains(error_text(open), "index.json: 'w' is in '../w.safetensors', which is not the name of a file beside"));
  write_file(path / "model.safetensors.index.json", "{}");
  CHECK(contains(error_text(open), R"(index.json: expected {"weight_map": {"name": "file", …}}, found no file in it)"));
  write_file(path / "model.safetensors.index.json", R"({"weight_map": {"w": "w.safetensors"}})");
  CHECK(contains(error_text(open), "w.safetensors"));
  CHECK(contains(error_text([&] { fsdp::files_of_index(path / "none.json"); }), "cannot read "));
  folder.remove();
}

TEST_CASE("a save refuses to mix with another form's files, and replaces its own") {
  const Folder folder;
  ranks::on_ranks(2, [=](const ranks::Rank& rank) {
    join_for_training(rank);
    Training<scenarios::NetworkCase> training(Case("model=network"));
    fsdp::save_state(training.model, folder.path());
    fsdp::save_state(training.model, folder.path());
    const std::string text =
        error_text([&] { fsdp::save_state(training.model, folder.path(), {.form = fsdp::CheckpointForm::kSharded}); });
    CHECK(contains(text, "save_state failed on rank 0: "));
    CHECK(contains(text,
                   "model.safetensors is from another save and would be mixed up with this one "
                   "(model-rank-00000-of-00002.safetensors): remove it, or save into another folder"));
    distributed::destroy_process_group();
  });
  folder.remove();
}

TEST_CASE("names and shapes of a file that do not fit are listed") {
  const Folder folder;
  scenarios::Network model(2, std::vector<int>{3}, 2, false, false), wide(4, std::vector<int>{3}, 2, false, false);
  fsdp::save_state(model, folder.path());
  CHECK(contains(error_text([&] { fsdp::load_state(wide, folder.path()); }),
                 " does not fit: wrong shape: 'layers.0.up.weight' has [3, 2], expected [3, 4]"));
  scenarios::Network deep(2, std::vector<int>{3, 3}, 2, false, false);
  CHECK(contains(error_text([&] { fsdp::load_state(deep, folder.path()); }),
                 " does not fit: missing: 'layers.1.up.weight', 'layers.1.up.bias', 'layers.1.down.weight', "
                 "'layers.1.down.bias' (load with {.strict = false} to leave them out)"));
  CHECK(fsdp::load_state(deep, folder.path(), {.strict = false}).missing.size() == 4);
  folder.remove();
}

TEST_CASE("a tied weight is loaded from any of its names") {
  const Folder folder;
  scenarios::GPT model = scenarios::GPTCase(Case("model=gpt tied=1")).build();
  auto state = fsdp::full_state(model);
  CHECK(state.contains("tokens.weight"));
  CHECK(!state.contains("head.weight"));
  auto node = state.extract("tokens.weight");
  node.key() = "head.weight";
  node.mapped() = node.mapped() + 1;
  const auto expected = node.mapped();
  state.insert(std::move(node));
  fsdp::load_full_state(model, state);
  CHECK(at::equal(model->tokens->weight, expected));
  state["tokens.weight"] = expected + 1;  // Like Python's state_dict: both names.
  fsdp::load_full_state(model, state);
  CHECK(at::equal(model->tokens->weight, expected + 1));
  folder.remove();
}

TEST_CASE("every dtype of the file format has its torch dtype, and other dtypes are refused by name") {
  for (int i = 0; i < safetensors::kDtypes; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    CHECK((fsdp::to_file_dtype(fsdp::to_torch_dtype(dtype), "w") == dtype));
    CHECK(c10::elementSize(fsdp::to_torch_dtype(dtype)) == safetensors::bytes_per_element(dtype));
  }
  CHECK((fsdp::to_torch_dtype(Dtype::kBF16) == at::kBFloat16));
  CHECK((fsdp::to_torch_dtype(Dtype::kF8E4M3) == at::kFloat8_e4m3fn));
  CHECK(contains(error_text([] { fsdp::to_file_dtype(at::kComplexFloat, "w"); }),
                 "'w' is ComplexFloat, which safetensors files cannot hold."));
}
