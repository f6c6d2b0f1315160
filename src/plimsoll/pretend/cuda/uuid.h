#pragma once

namespace plimsoll::pretend {

/// Sixteen bytes that tell the pretended cards apart.
inline void fill_uuid(char* bytes, int device) {
  constexpr char kPrefix[] = "plimsoll-gpu-";
  for (int i = 0; i < 13; ++i) bytes[i] = kPrefix[i];
  bytes[13] = 0;
  bytes[14] = static_cast<char>(device >> 8);
  bytes[15] = static_cast<char>(device);
}

}  // namespace plimsoll::pretend
