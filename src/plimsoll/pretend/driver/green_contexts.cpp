// Green contexts divide a card's multiprocessors. They are refused by name: the pretend GPU has no multiprocessors. Do
// not include cuda.h: older versions do not declare these functions, and a refusal reads no parameter.

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
