#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <string>

/// The message of the exception that a call throws, without torch's stack; empty if it does not throw.
template <class Call>
std::string error_text(Call&& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}
