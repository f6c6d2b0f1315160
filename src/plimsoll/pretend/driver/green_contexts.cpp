// Green contexts divide a card's multiprocessors. They are refused, by name: there is nothing to divide.
// cuda.h is left out on purpose: its older versions do not declare these, and a refusal reads no parameter.

#include "plimsoll/pretend/model/library_call.h"

#define PLIMSOLL_REFUSED(name) \
  PLIMSOLL_API int name() { return plimsoll::pretend::unpretended(#name, 801); }

PLIMSOLL_REFUSED(cuCtxFromGreenCtx)
PLIMSOLL_REFUSED(cuGreenCtxCreate)
PLIMSOLL_REFUSED(cuGreenCtxDestroy)
PLIMSOLL_REFUSED(cuGreenCtxStreamCreate)
PLIMSOLL_REFUSED(cuDevSmResourceSplitByCount)
PLIMSOLL_REFUSED(cuDeviceGetDevResource)
PLIMSOLL_REFUSED(cuDevResourceGenerateDesc)
