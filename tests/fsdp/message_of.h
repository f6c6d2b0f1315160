#pragma once

#include <c10/util/Exception.h>
#include <doctest/doctest.h>

#include <exception>

namespace small {

/// The message of the exception that a call throws, without torch's stack; empty if it does not throw. For `==
/// doctest::Contains(…)`.
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
