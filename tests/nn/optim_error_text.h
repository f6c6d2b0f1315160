#pragma once

#include <c10/util/Exception.h>

#include <string>

/// What a call throws, without the backtrace; empty where it throws nothing.
template <class Call>
std::string error_text(Call&& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}
