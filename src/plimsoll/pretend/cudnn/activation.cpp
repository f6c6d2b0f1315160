#include "plimsoll/pretend/cudnn/activation.h"

#include "plimsoll/pretend/model/library_call.h"

using namespace plimsoll::pretend::cudnn;

PLIMSOLL_API int cudnnCreateActivationDescriptor(ActivationDescriptor** out) { return create(out); }
PLIMSOLL_API int cudnnDestroyActivationDescriptor(ActivationDescriptor* activation) { return destroy(activation); }

PLIMSOLL_API int cudnnSetActivationDescriptor(ActivationDescriptor* activation, int mode, int nan_propagation,
                                              double coefficient) {
  if (live(activation) == nullptr) return kBadParam;
  activation->mode = mode;
  activation->nan_propagation = nan_propagation;
  activation->coefficient = coefficient;
  return kSuccess;
}

PLIMSOLL_API int cudnnGetActivationDescriptor(const ActivationDescriptor* activation, int* mode, int* nan_propagation,
                                              double* coefficient) {
  if (live(activation) == nullptr) return kBadParam;
  give(mode, activation->mode);
  give(nan_propagation, activation->nan_propagation);
  give(coefficient, activation->coefficient);
  return kSuccess;
}
