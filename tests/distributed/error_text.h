#pragma once

#include <c10/util/Exception.h>

#include <string>

/// What a function throws says, without the stack; empty if it throws nothing.
template <class Function>
std::string error_text(Function function) {
  try {
    function();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}
