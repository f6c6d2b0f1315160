#pragma once

#include <c10/util/Exception.h>
#include <doctest/doctest.h>

#include <exception>

namespace small {

/// What a call throws says, without torch's stack; empty where it throws nothing. For `== doctest::Contains(…)`.
template <class Call>
doctest::String message_of(Call&& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace small
