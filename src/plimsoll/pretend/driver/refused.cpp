// Functions that are refused by name. Do not include cuda.h: older versions do not declare all of them, and a refusal
// reads no parameter.

#include "plimsoll/pretend/model/library_call.h"

#define PLIMSOLL_REFUSED(name) \
  PLIMSOLL_API int name() { return plimsoll::pretend::unpretended(#name, 801); }

// Green contexts divide a card's multiprocessors. The pretend GPU has no multiprocessors.
PLIMSOLL_REFUSED(cuCtxFromGreenCtx)
PLIMSOLL_REFUSED(cuGreenCtxCreate)
PLIMSOLL_REFUSED(cuGreenCtxDestroy)
PLIMSOLL_REFUSED(cuGreenCtxStreamCreate)
PLIMSOLL_REFUSED(cuDevSmResourceSplitByCount)
PLIMSOLL_REFUSED(cuDeviceGetDevResource)
PLIMSOLL_REFUSED(cuDevResourceGenerateDesc)

// Memory cannot be shared between processes, and the pretend GPU has no NVSwitch: torch then uses its other path.
PLIMSOLL_REFUSED(cuMemExportToShareableHandle)
PLIMSOLL_REFUSED(cuMemImportFromShareableHandle)
PLIMSOLL_REFUSED(cuMulticastCreate)
PLIMSOLL_REFUSED(cuMulticastAddDevice)
PLIMSOLL_REFUSED(cuMulticastBindMem)
PLIMSOLL_REFUSED(cuMulticastUnbind)
