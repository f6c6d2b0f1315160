#pragma once

#include <c10/util/Exception.h>

#include <string>

/// The message of a call's exception, without the backtrace; empty if it does not throw.
template <class Call>
std::string error_text(Call&& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}
