#pragma once

#include "plimsoll/pretend/cudnn/handle.h"

namespace plimsoll::pretend::cudnn {

/// cudnnDropoutDescriptor_t.
struct DropoutDescriptor : Object<0x43444e44> {
  float probability = 0;
  void* states = nullptr;
  Bytes states_bytes = 0;
  unsigned long long seed = 0;
};

}  // namespace plimsoll::pretend::cudnn
