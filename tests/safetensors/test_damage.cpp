#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "plimsoll/base/errors.h"
#include "plimsoll/safetensors/header.h"
#include "safetensors/scratch.h"

namespace test_damage {

using namespace plimsoll;
using namespace plimsoll::safetensors;

namespace {

/// Three tensors of 4, 2 and 0 bytes, and metadata.
std::vector<std::byte> small_file() {
  const std::vector<TensorInfo> tensors =
      lay_out({{"a", Dtype::kF32, {1}}, {"b.weight", Dtype::kI8, {2, 1}}, {"é", Dtype::kI8, {0}}});
  return bytes_of(encode_header(tensors, {{"format", "pt"}}) + "abcdef");
}

/// False for a FormatError. Accepted tensors must lie within the file; each byte is read.
bool accepts(const std::vector<std::byte>& file) {
  try {
    const Header header = decode_header(file, "m");
    std::size_t seen = 0;
    unsigned sum = 0;
    for (const TensorInfo& tensor : header.tensors) {
      REQUIRE(tensor_bytes(tensor.dtype, tensor.shape) == tensor.bytes());
      for (Bytes i = tensor.begin; i < tensor.end; ++i, ++seen)
        sum += static_cast<unsigned>(file.at(header.data_begin + i));
    }
    CHECK(header.data_begin + seen == file.size());
    CHECK(sum < 256 * (seen + 1));
    return true;
  } catch (const FormatError& error) {
    CHECK(std::string(error.what()).starts_with("m: "));
    return false;
  }
}

}  // namespace

TEST_CASE("a file that is cut off at any byte is refused") {
  const std::vector<std::byte> file = small_file();
  REQUIRE(accepts(file));
  for (std::size_t length = 0; length < file.size(); ++length) {
    CAPTURE(length);
    // Copied, so that the address sanitizer sees a read beyond the end.
    CHECK_FALSE(accepts(std::vector<std::byte>(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length))));
  }
}

TEST_CASE("a header with one flipped bit is refused, or describes another file") {
  std::vector<std::byte> file = small_file();
  const Bytes header = decode_header(file, "m").data_begin;
  int accepted = 0;
  int refused = 0;
  for (std::size_t i = 0; i < header * 8; ++i) {
    CAPTURE(i);
    file[i / 8] ^= static_cast<std::byte>(1 << (i % 8));
    (accepts(file) ? accepted : refused)++;
    file[i / 8] ^= static_cast<std::byte>(1 << (i % 8));
  }
  CHECK(accepted > 20);  // Names and metadata.
  CHECK(refused > 500);
}

TEST_CASE("a header with an added, removed or changed byte is refused, or describes another file") {
  const std::vector<std::byte> file = small_file();
  const Bytes header = decode_header(file, "m").data_begin;
  std::mt19937 random(1);
  const std::string pieces = "{}[]\",:0123456789-.eE\\u \n\xFF\x80";
  for (std::size_t i = 0; i < 20'000; ++i) {
    std::vector<std::byte> changed = file;
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      const auto at = changed.begin() + static_cast<std::ptrdiff_t>(8 + random() % (header - 8));
      const std::byte piece = static_cast<std::byte>(pieces[random() % pieces.size()]);
      switch (random() % 3) {
        case 0:
          changed.insert(at, piece);
          break;
        case 1:
          changed.erase(at);
          break;
        default:
          *at = piece;
      }
    }
    if (i % 2 == 0) {  // Adjust the length, or nearly all are refused for their offsets.
      const std::size_t length = changed.size() - 8 - 6;
      for (std::size_t k = 0; k < 8; ++k) changed[k] = static_cast<std::byte>(length >> (8 * k));
    }
    accepts(changed);
  }
}

TEST_CASE("random bytes are refused") {
  std::mt19937 random(2);
  for (int i = 0; i < 2'000; ++i) {
    std::vector<std::byte> file(random() % 64);
    for (std::byte& byte : file) byte = static_cast<std::byte>(random());
    if (file.size() >= 8 && i % 2 == 0) {
      for (std::size_t k = 1; k < 8; ++k) file[k] = std::byte{0};
      if (file.size() > 8) file[8] = static_cast<std::byte>('{');
    }
    CHECK_FALSE(accepts(file));
  }
}

}  // namespace test_damage
