#pragma once

#include <c10/util/Exception.h>

#include <string>

/// The message of the exception that a function throws, without the stack; empty if it does not throw.
template <class Function>
std::string error_text(Function function) {
  try {
    function();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}
