#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "plimsoll/base/errors.h"
#include "plimsoll/safetensors/file.h"
#include "safetensors/scratch.h"

namespace test_writer {

using namespace plimsoll;
using namespace plimsoll::safetensors;
namespace fs = std::filesystem;
using Names = std::vector<std::string>;

namespace {

void check_refused(const std::vector<TensorSpec>& tensors, const Metadata& metadata, const std::string& why) {
  const Scratch scratch;
  CHECK_THROWS_WITH_AS(Writer(scratch.path / "a", tensors, metadata), why.c_str(), InvalidArgument);
  CHECK(scratch.names().empty());
}

}  // namespace

TEST_CASE_FIXTURE(Scratch, "only a finished file has its name, and no other file remains") {
  std::ofstream(path / "a") << "older";
  {
    Writer writer(path / "a", {{"t", Dtype::kU8, {4}}});
    writer.write("t", counting(4, 0));
    CHECK(contents(path / "a") == "older");
    CHECK(names().size() == 2);
    writer.finish();
    CHECK(names() == Names{"a"});
    CHECK_THROWS_WITH_AS(writer.write("t", {}),
                         (path.string() + "/a: tensor 't' comes after finish(); write everything "
                                          "before it")
                             .c_str(),
                         InvalidArgument);
    CHECK_THROWS_WITH_AS(writer.finish(), (path.string() + "/a is finished already").c_str(), InvalidArgument);
  }
  CHECK(Reader(path / "a").bytes("t").size() == 4);
}

TEST_CASE_FIXTURE(Scratch, "a dropped writer leaves the old file and no other") {
  std::ofstream(path / "a") << "older";
  {
    Writer writer(path / "a", {{"t", Dtype::kU8, {4}}});
    writer.write("t", counting(2, 0));
  }
  CHECK(names() == Names{"a"});
  CHECK(contents(path / "a") == "older");
}

TEST_CASE_FIXTURE(Scratch, "missing and excess bytes are refused with the tensor's name") {
  const std::string file = path.string() + "/a";
  Writer writer(file, {{"t", Dtype::kU8, {4}}});
  CHECK_THROWS_WITH_AS(writer.write("u", {}),
                       (file + ": tensor 'u' was not declared; name all tensors when you make the writer").c_str(),
                       InvalidArgument);
  writer.write("t", counting(3, 0));
  CHECK_THROWS_WITH_AS(writer.write("t", counting(2, 0)),
                       (file + ": tensor 't' has 4 bytes, and 2 were given after 3").c_str(), InvalidArgument);
  CHECK_THROWS_WITH_AS(writer.finish(),
                       (file + ": of tensor 't' 3 bytes of 4 were written; write the rest before "
                               "finish()")
                           .c_str(),
                       InvalidArgument);
  writer.write("t", counting(1, 3));
  writer.finish();
  CHECK(std::ranges::equal(Reader(file).bytes("t"), counting(4, 0)));
}

TEST_CASE("an impossible table is refused before any write") {
  check_refused({{"t", Dtype::kU8, {1}}, {"t", Dtype::kF32, {}}}, {},
                "tensor 't' is declared twice; give each tensor a name of its own");
  check_refused({{"__metadata__", Dtype::kU8, {1}}}, {},
                "tensor '__metadata__': the name is reserved for metadata; choose another");
  const std::string rule = "; dimensions are not negative, and all bytes together fit 64 bits";
  check_refused({{"t", Dtype::kU8, {2, -1}}}, {}, "tensor 't': no file can hold the shape [2,-1] of U8" + rule);
  check_refused({{"t", Dtype::kF32, {INT64_MAX}}}, {},
                "tensor 't': no file can hold the shape [9223372036854775807] of F32" + rule);
  check_refused({{"s", Dtype::kU8, {INT64_MAX}}, {"t", Dtype::kU8, {INT64_MAX}}, {"u", Dtype::kU8, {2}}}, {},
                "tensor 'u': no file can hold the shape [2] of U8" + rule);
  check_refused({{"\xFF", Dtype::kU8, {2}}}, {},
                "names and metadata of a safetensors file are UTF-8: '\xFF' is not UTF-8");
  check_refused({}, {{"k", "\xC3"}}, "names and metadata of a safetensors file are UTF-8: '\xC3' is not UTF-8");
  check_refused({{"t", Dtype::kU8, {}}}, {{"k", std::string(100'000'000, 'x')}},
                "the header of a safetensors file has at most 100000000 bytes, and 1 tensors with their metadata need "
                "100000080; spread them over several files");
}

TEST_CASE_FIXTURE(Scratch, "a file that cannot be written is refused with the reason") {
  CHECK_THROWS_WITH_AS(Writer(path, {}),
                       ("cannot write " + path.string() + ": it is a folder; name a file in it").c_str(),
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(Writer(path / "none" / "a", {}), doctest::Contains("No such file or directory"), SystemError);
}

TEST_CASE_FIXTURE(Scratch, "a file that cannot be read is refused with the reason") {
  CHECK_THROWS_WITH_AS(Reader(path / "none"),
                       ("cannot read " + path.string() + "/none: No such file or directory").c_str(), SystemError);
  CHECK_THROWS_WITH_AS(Reader{path}, ("cannot read " + path.string() + ": it is not a regular file").c_str(),
                       InvalidArgument);
  std::ofstream(path / "empty").flush();
  CHECK_THROWS_WITH_AS(Reader(path / "empty"), doctest::Contains("/empty: it has 0 bytes"), FormatError);
  Writer writer(path / "a", {{"t", Dtype::kU8, {}}});
  writer.write("t", counting(1, 0));
  writer.finish();
  const Reader reader(path / "a");
  CHECK_FALSE(reader.contains("u"));
  CHECK_THROWS_WITH_AS(reader.bytes("u"), (path.string() + "/a has no tensor 'u' among its 1").c_str(),
                       InvalidArgument);
}

TEST_CASE_FIXTURE(Scratch, "a bare name is a file in the working folder") {
  const fs::path before = fs::current_path();
  fs::current_path(path);
  Writer("a", {}).finish();
  fs::current_path(before);
  CHECK(names() == Names{"a"});
}

}  // namespace test_writer
