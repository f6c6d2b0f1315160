#pragma once

#include <cstdint>

#include "plimsoll/nn/modules.h"

namespace plimsoll::models {

inline nn::Linear linear(std::int64_t in, std::int64_t out, bool bias) {
  return nn::Linear(torch::nn::LinearOptions(in, out).bias(bias));
}

}  // namespace plimsoll::models
