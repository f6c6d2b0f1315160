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

/// Bytes of the random generators' states: one XORWOW state (48 bytes, as cuRAND's header says) for each thread that
/// the device can hold at once. The real size is not documented; this is how such states are dealt.
Bytes dropout_states_bytes();

}  // namespace plimsoll::pretend::cudnn
