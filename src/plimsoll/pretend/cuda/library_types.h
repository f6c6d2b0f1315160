#pragma once

#include <cstdint>

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/cuda/version.h"

/// The enumerations that all math libraries of the toolkit share: cudaDataType and libraryPropertyType, as far as sizes
/// depend on them.

namespace plimsoll::pretend {

/// The values of cudaDataType that the code uses.
enum DataType : int {
  kR32F = 0,
  kR64F = 1,
  kR16F = 2,
  kR8I = 3,
  kC32F = 4,
  kC64F = 5,
  kC16F = 6,
  kR32I = 10,
  kR16BF = 14,
  kC16BF = 15,
  kR8FE4M3 = 28,
  kR4FE2M1 = 33,
};

/// Bits of one element of a cudaDataType; 0 for an unknown value.
constexpr Bytes bits_of(int type) {
  constexpr std::uint8_t kBits[] = {
      32, 64, 16, 8,  64, 128, 32, 16,                    // R32F R64F R16F R8I C32F C64F C16F C8I
      8,  16, 32, 64, 32, 64,  16, 32,                    // R8U C8U R32I C32I R32U C32U R16BF C16BF
      4,  8,  4,  8,  16, 32,  16, 32, 64, 128, 64, 128,  // R4I C4I R4U C4U R16I C16I R16U C16U R64I C64I R64U C64U
      8,  8,  8,  6,  6,  4,                              // E4M3 E5M2 UE8M0 E2M3 E3M2 E2M1
  };
  return type >= 0 && type < static_cast<int>(sizeof kBits) ? kBits[type] : 0;
}

/// Bytes of one element of a cudaDataType of whole bytes; 0 for an unknown value.
constexpr Bytes bytes_of(int type) { return bits_of(type) / 8; }

static_assert(bytes_of(kR32F) == 4 && bytes_of(kC64F) == 16 && bytes_of(kR16BF) == 2 && bytes_of(kR8FE4M3) == 1);
static_assert(bits_of(kR4FE2M1) == 4 && bits_of(kR4FE2M1 + 1) == 0);

/// The versions that the math libraries report: those of the wheels that torch depends on, for CUDA 13.0 and 12.8.
inline constexpr bool kCuda13 = PLIMSOLL_CUDA_MAJOR >= 13;
inline constexpr Version kCublasVersion = kCuda13 ? Version{13, 1, 0} : Version{12, 8, 4};
inline constexpr Version kCusparseVersion = kCuda13 ? Version{12, 6, 3} : Version{12, 5, 8};
inline constexpr Version kCusolverVersion = kCuda13 ? Version{12, 0, 4} : Version{11, 7, 3};
inline constexpr Version kCufftVersion = kCuda13 ? Version{12, 0, 0} : Version{11, 3, 3};
inline constexpr Version kCurandVersion = kCuda13 ? Version{10, 4, 0} : Version{10, 3, 9};

}  // namespace plimsoll::pretend
