#include "plimsoll/pretend/model/uuid.h"

#include <cstdio>
#include <cstring>

namespace plimsoll::pretend {

void fill_uuid(char* bytes, int card) {
  std::memcpy(bytes, "plimsoll-gpu-", 13);
  bytes[13] = 0;
  bytes[14] = static_cast<char>(card >> 8);
  bytes[15] = static_cast<char>(card);
}

std::string uuid_text(int card) {
  char bytes[16];
  fill_uuid(bytes, card);
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char hex[3];
    std::snprintf(hex, sizeof(hex), "%02x", static_cast<unsigned char>(bytes[i]));
    text += hex;
  }
  return text;
}

}  // namespace plimsoll::pretend
