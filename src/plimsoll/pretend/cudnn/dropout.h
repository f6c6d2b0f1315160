#pragma once

#include "plimsoll/pretend/cudnn/object.h"

namespace plimsoll::pretend::cudnn {

/// cudnnDropoutDescriptor_t.
struct DropoutDescriptor : Object<0x43444e44> {
  float probability = 0;
  void* states = nullptr;
  Bytes states_bytes = 0;
  unsigned long long seed = 0;
};

/// Bytes of the random generators' states: one XORWOW state (48 bytes, from cuRAND's header) for each thread that fits
/// on the device. An estimate; the real size is not documented.
Bytes dropout_states_bytes();

}  // namespace plimsoll::pretend::cudnn
