#pragma once

#include "plimsoll/pretend/cudnn/object.h"

namespace plimsoll::pretend::cudnn {

/// cudnnActivationDescriptor_t.
struct ActivationDescriptor : Object<0x43444e41> {
  int mode = 0;
  int nan_propagation = 0;
  double coefficient = 0;
};

}  // namespace plimsoll::pretend::cudnn
