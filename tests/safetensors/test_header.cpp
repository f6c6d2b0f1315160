#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "plimsoll/base/errors.h"
#include "plimsoll/safetensors/header.h"
#include "safetensors/scratch.h"

namespace test_header {

using namespace plimsoll;
using namespace plimsoll::safetensors;

namespace {

/// A file with this header and `data` bytes after it.
std::vector<std::byte> file_of(const std::string& json, std::size_t data = 0) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(json.size() >> (8 * i));
  return bytes_of(text + json + std::string(data, 'd'));
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

void check_refused(const std::vector<std::byte>& file, const std::string& why) {
  CHECK_THROWS_WITH_AS(decode_header(file, "m.safetensors"), ("m.safetensors: " + why).c_str(), FormatError);
}

void check_refused(const std::string& json, std::size_t data, const std::string& why) {
  check_refused(file_of(json, data), why);
}

}  // namespace

TEST_CASE("a header in any order, with spaces and unknown fields, is read in the order of the bytes") {
  const std::string json = R"({ "b": {"data_offsets": [2, 6], "new": [{"x": [1.5, null]}, -1, true], "shape": [2],
    "dtype": "F16"}, "__metadata__": {"k": "v"}, )" +
                           tensor("z", "U8", "[2]", "[0,2]") + "," + tensor("e", "F64", "[7,0]", "[2,2]") + "}\n ";
  const Header header = decode_header(file_of(json, 4 + 2), "m");
  CHECK(header.data_begin == 8 + json.size());
  CHECK(header.metadata == Metadata{{"k", "v"}});
  CHECK(header.tensors == std::vector<TensorInfo>{{"z", Dtype::kU8, {2}, 0, 2},
                                                  {"e", Dtype::kF64, {7, 0}, 2, 2},
                                                  {"b", Dtype::kF16, {2}, 2, 6}});
  CHECK(decode_header(file_of(R"({"__metadata__":null})"), "m").metadata.empty());
  CHECK(decode_header(file_of("{" + tensor("", "I8", "[]", "[0,1]") + "}", 1), "m").tensors.size() == 1);
}

TEST_CASE("a file of another format is refused") {
  check_refused(bytes_of("short"),
                "it has 5 bytes, and a safetensors file at least 8: it is cut off, or not a safetensors file");
  check_refused(
      bytes_of("PK\x03\x04 something else"),
      "its header would have 7885648053892500304 bytes, and at most 100000000 are allowed: it is not a safetensors "
      "file, or damaged");
  check_refused(std::vector<std::byte>(200), "its header does not begin with '{': it is not a safetensors file");
  check_refused(" {}", 0, "its header does not begin with '{': it is not a safetensors file");
  std::vector<std::byte> cut = file_of("{}      ");
  cut.pop_back();
  check_refused(cut, "its header should have 8 bytes, and 7 exist: it is cut off");
}

TEST_CASE("the longest allowed header is read, and one byte more is refused") {
  std::string json = "{}";
  json.resize(kMaximumHeaderBytes, ' ');
  CHECK(decode_header(file_of(json), "m").tensors.empty());
  json += ' ';
  check_refused(
      json, 0,
      "its header would have 100000001 bytes, and at most 100000000 are allowed: it is not a safetensors file, or "
      "damaged");
}

TEST_CASE("a header that is not JSON is refused with the byte") {
  check_refused("{", 0, "its JSON is broken at byte 2");
  check_refused("{}x", 0, "its JSON is broken at byte 3");
  check_refused("{} {}", 0, "its JSON is broken at byte 4");
  check_refused("{\"a\":1e999}", 0, "its JSON is broken at byte 10");
  check_refused("{/**/}", 0, "its JSON is broken at byte 2");
  check_refused(std::string("{}\0", 3), 0, "its JSON is broken at byte 3");
  check_refused("{\"\xFF\":{}}", 0, "its JSON is broken at byte 3");
  check_refused("{\"\xC3\":{}}", 0, "its JSON is broken at byte 4");
  check_refused(R"({"\ud800":{}})", 0, "its JSON is broken at byte 9");
  check_refused(R"({"a":{"new":)" + std::string(80, '['), 0, "its JSON is nested deeper than 64 levels");
}

TEST_CASE("a repeated name is refused") {
  const std::string once = tensor("a", "U8", "[1]", "[0,1]");
  check_refused("{" + once + "," + once + "}", 1, "the key 'a' appears twice in one object");
  check_refused(R"({"__metadata__":{"k":"1","k":"2"}})", 0, "the key 'k' appears twice in one object");
  check_refused(R"({"__metadata__":{},"__metadata__":{}})", 0, "the key '__metadata__' appears twice in one object");
  check_refused(R"({"a":{"dtype":"U8","dtype":"U8"}})", 0, "the key 'dtype' appears twice in one object");
}

TEST_CASE("a wrong description of a tensor is refused by name") {
  check_refused("{" + tensor("a.b", "F12", "[1]", "[0,1]") + "}", 1,
                "tensor 'a.b': the dtype 'F12' is unknown; known are: BOOL U8 I8 F8_E5M2 F8_E4M3 I16 U16 F16 BF16 "
                "I32 U32 F32 F64 I64 U64");
  check_refused(R"({"a":1})", 0, "tensor 'a': must be an object, found a number");
  check_refused(R"({"a":"x"})", 0, "tensor 'a': must be an object, found a text");
  check_refused(R"({"a":null})", 0, "tensor 'a': must be an object, found null");
  check_refused(R"({"a":["U8",[1],[0,1]]})", 1, "tensor 'a': must be an object, found an array");
  check_refused(R"({"a":{}})", 0, "tensor 'a': has no dtype");
  check_refused(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1, "tensor 'a': has no shape");
  check_refused(R"({"a":{"dtype":"U8","shape":[1]}})", 1, "tensor 'a': has no data_offsets");
  check_refused(R"({"a":{"dtype":7}})", 0, "tensor 'a': dtype must be a text, found a number");
  check_refused(R"({"a":{"dtype":["U8"]}})", 0, "tensor 'a': dtype must be a text, found an array");
  check_refused(R"({"a":{"shape":1}})", 0, "tensor 'a': shape must be an array, found a number");
  check_refused(R"({"a":{"shape":"1"}})", 0, "tensor 'a': shape must be an array, found a text");
  check_refused(R"({"a":{"shape":{"[]":1}}})", 0, "tensor 'a': shape must be an array, found an object");
  check_refused(R"({"a":{"shape":[[1]]}})", 0, "tensor 'a': shape must be whole numbers, found an array");
  check_refused(R"({"a":{"shape":["1"]}})", 0, "tensor 'a': shape must be whole numbers, found a text");
  check_refused(R"({"a":{"shape":[-1]}})", 0, "tensor 'a': shape must be whole numbers, found a negative number");
  check_refused(R"({"a":{"shape":[1.0]}})", 0,
                "tensor 'a': shape must be whole numbers, found a number that is not whole or too large");
  check_refused(R"({"a":{"shape":[18446744073709551616]}})", 0,
                "tensor 'a': shape must be whole numbers, found a number that is not whole or too large");
  check_refused(R"({"a":{"shape":[18446744073709551615]}})", 0,
                "tensor 'a': the dimension 18446744073709551615 is too large");
  check_refused(R"({"a":{"shape":[true]}})", 0, "tensor 'a': shape must be whole numbers, found a truth value");
  check_refused(R"({"a":{"data_offsets":[0]}})", 0, "tensor 'a': data_offsets must be two numbers, found 1");
  check_refused(R"({"a":{"data_offsets":[0,1,2]}})", 0, "tensor 'a': data_offsets must be two numbers, found 3");
  check_refused(R"({"__metadata__":[]})", 0, "__metadata__: must be an object, found an array");
  check_refused(R"({"__metadata__":{"k":1}})", 0, "__metadata__: must be a text for each key, found a number of 'k'");
  check_refused(R"({"__metadata__":{"k":{}}})", 0, "__metadata__: must be a text for each key, found an object of 'k'");
}

TEST_CASE("wrong offsets are refused with the name of the tensor") {
  const std::string a = tensor("a", "U8", "[4]", "[0,4]");
  check_refused("{" + tensor("a", "U8", "[4]", "[4,0]") + "}", 4,
                "tensor 'a': data_offsets [4,0] end before they begin");
  check_refused("{" + a + "," + tensor("b", "U8", "[4]", "[2,6]") + "}", 6,
                "tensor 'b': data_offsets [2,6] overlap those of another tensor, which end at 4");
  check_refused("{" + a + "," + tensor("b", "U8", "[4]", "[0,4]") + "}", 4,
                "tensor 'b': data_offsets [0,4] overlap those of another tensor, which end at 4");
  check_refused("{" + a + "," + tensor("b", "U8", "[0]", "[2,2]") + "}", 4,
                "tensor 'b': data_offsets [2,2] overlap those of another tensor, which end at 4");
  check_refused("{" + a + "," + tensor("b", "U8", "[1]", "[5,6]") + "}", 6,
                "tensor 'b': data_offsets [5,6] leave a hole: the tensor before ends at 4");
  check_refused("{" + tensor("a", "U8", "[4]", "[1,5]") + "}", 5,
                "tensor 'a': data_offsets [1,5] leave a hole: the tensor before ends at 0");
  check_refused("{" + tensor("a", "F32", "[2,3]", "[0,4]") + "}", 4,
                "tensor 'a': data_offsets [0,4] hold 4 bytes, and the shape [2,3] of F32 needs 24");
  check_refused("{" + tensor("a", "F32", "[]", "[0,3]") + "}", 3,
                "tensor 'a': data_offsets [0,3] hold 3 bytes, and the shape [] of F32 needs 4");
  check_refused("{" + tensor("a", "U8", "[4611686018427387904,4611686018427387904,0]", "[0,0]") + "}", 0,
                "tensor 'a': the shape [4611686018427387904,4611686018427387904,0] of U8 is too large");
  check_refused(
      "{" + a + "}", 3,
      "tensor 'a': data_offsets [0,4] lie outside the file, which has 3 bytes after its header: it is cut off");
  check_refused(
      "{" + tensor("a", "U8", "[9223372036854775807]", "[0,9223372036854775807]") + "}", 3,
      "tensor 'a': data_offsets [0,9223372036854775807] lie outside the file, which has 3 bytes after its header: "
      "it is cut off");
  check_refused("{" + a + "}", 5, "its tensors end at byte 4 of the data, and 1 bytes follow that belong to no tensor");
  check_refused("{}", 2, "its tensors end at byte 0 of the data, and 2 bytes follow that belong to no tensor");
}

TEST_CASE("a name is shown in a message on one line, and a long one is cut between characters") {
  check_refused("{\"" + std::string(119, 'n') + "éé\":1}", 0,
                "tensor '" + std::string(119, 'n') + "…': must be an object, found a number");
  check_refused(R"({"a\nb":1})", 0, "tensor 'a?b': must be an object, found a number");
}

}  // namespace test_header
