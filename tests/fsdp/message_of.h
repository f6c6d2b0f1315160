#pragma once

#include <doctest/doctest.h>

#include "nn/error_text.h"

namespace small {

/// error_text() in the form that `== doctest::Contains(…)` takes.
template <class Call>
doctest::String message_of(Call&& call) {
  return error_text(call).c_str();
}

}  // namespace small
