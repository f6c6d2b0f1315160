#include <doctest/doctest.h>

#include <string>

#include "plimsoll/base/errors.h"
#include "plimsoll/safetensors/manifest.h"

namespace test_manifest {

using namespace plimsoll;
using namespace plimsoll::safetensors;

namespace {

void check_refused(const std::string& text, const std::string& why) {
  CHECK_THROWS_WITH_AS(decode_manifest(text), why.c_str(), FormatError);
}

const Manifest kSample{120, {{"model.safetensors", 4096}, {"rank-1/é", 0}}, {{"k", "v \"\n"}}};

}  // namespace

TEST_CASE("a manifest is readable text, and reads back as the same manifest") {
  CHECK(encode_manifest(kSample) == R"({
  "format_version": 1,
  "step": 120,
  "files": {
    "model.safetensors": 4096,
    "rank-1/é": 0
  },
  "metadata": {
    "k": "v \"\n"
  }
}
)");
  CHECK(decode_manifest(encode_manifest(kSample)) == kSample);
  CHECK(decode_manifest(encode_manifest({})) == Manifest{});
  const Manifest last{UINT64_MAX, {}, {}};
  CHECK(decode_manifest(encode_manifest(last)) == last);
}

TEST_CASE("unknown fields of a manifest are ignored") {
  CHECK(decode_manifest(R"({"new":{"a":[1,null,"x"]},"format_version":1,"step":3,"files":{},"also":-1.5})").step == 3);
}

TEST_CASE("a manifest that is cut off at any byte is refused") {
  std::string text = encode_manifest(kSample);
  text.pop_back();  // The end of the line.
  for (std::size_t length = 0; length < text.size(); ++length) {
    CAPTURE(length);
    CHECK_THROWS_AS(decode_manifest(text.substr(0, length)), FormatError);
  }
}

TEST_CASE("the message for a wrong manifest says the reason") {
  check_refused("[]", "it is not a JSON object");
  check_refused("3", "it is not a JSON object");
  check_refused("{}", "it has no format_version");
  check_refused(R"({"format_version":1,"files":{}})", "it has no step");
  check_refused(R"({"format_version":1,"step":1})", "it has no files");
  check_refused(R"({"format_version":2})", "it has version 2 of the format, and this program reads version 1");
  check_refused(R"({"format_version":"1"})", "its 'format_version' has the wrong type");
  check_refused(R"({"step":-1})", "its 'step' has the wrong type");
  check_refused(R"({"step":[1]})", "its 'step' has the wrong type");
  check_refused(R"({"files":[]})", "its 'files' has the wrong type");
  check_refused(R"({"files":3})", "its 'files' has the wrong type");
  check_refused(R"({"files":{"a":"b"}})", "its 'files' has the wrong type");
  check_refused(R"({"files":{"a":{}}})", "its 'files' has the wrong type");
  check_refused(R"({"metadata":{"a":1}})", "its 'metadata' has the wrong type");
  check_refused(R"({"step":1,"step":1})", "the key 'step' appears twice in one object");
  for (const std::string file : {"/etc/passwd", "../a", "a/../../b", ""}) {
    check_refused(R"({"files":{")" + file + R"(":1}})", "the file '" + file + "' lies outside the checkpoint");
  }
}

}  // namespace test_manifest
