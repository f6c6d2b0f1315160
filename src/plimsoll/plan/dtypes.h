#pragma once

#include <c10/core/ScalarType.h>

#include "plimsoll/job/job.h"

namespace plimsoll::plan {

inline at::ScalarType scalar_type(job::Dtype dtype) {
  switch (dtype) {
    case job::Dtype::kBf16:
      return at::kBFloat16;
    case job::Dtype::kFp16:
      return at::kHalf;
    case job::Dtype::kFp32:
      break;
  }
  return at::kFloat;
}

}  // namespace plimsoll::plan
