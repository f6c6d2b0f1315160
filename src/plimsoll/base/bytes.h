#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plimsoll {

/// A count of bytes. Every number of memory in this project is one, unless its name says otherwise.
using Bytes = std::uint64_t;

namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return n; }
constexpr Bytes operator""_KiB(unsigned long long n) { return n << 10; }
constexpr Bytes operator""_MiB(unsigned long long n) { return n << 20; }
constexpr Bytes operator""_GiB(unsigned long long n) { return n << 30; }
constexpr Bytes operator""_TiB(unsigned long long n) { return n << 40; }
}  // namespace literals

/// The least multiple of `granularity` that is not below `bytes`.
/// REQUIRES: granularity > 0.
constexpr Bytes round_up(Bytes bytes, Bytes granularity) {
  return (bytes + granularity - 1) / granularity * granularity;
}

/// "22.70 GiB", "512 B": the largest IEC unit that keeps the number at or above one, two decimals from KiB on.
std::string format_bytes(Bytes bytes);

enum class ByteUnit : std::uint8_t { kB, kKiB, kMiB, kGiB };

constexpr Bytes bytes_of(ByteUnit unit) { return Bytes{1} << (10 * static_cast<unsigned>(unit)); }

/// The same in one unit: "22.70 GiB", "512 B".
std::string format_bytes(Bytes bytes, ByteUnit unit);

/// "B", "KiB", "MiB" or "GiB", in any case. Throws InvalidArgument that quotes `text` and lists the units.
ByteUnit parse_byte_unit(std::string_view text);

/// The inverse, for people: "80GiB", "24 GB", "1024". IEC units are powers of 1024, SI units (kB, MB, GB, TB) powers
/// of 1000; no unit means bytes.
/// Throws InvalidArgument that quotes `text` when it is not such a number.
Bytes parse_bytes(std::string_view text);

}  // namespace plimsoll
