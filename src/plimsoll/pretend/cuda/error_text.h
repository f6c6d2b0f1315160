#pragma once

#include <cstddef>
#include <string>

#include "plimsoll/pretend/model/library_call.h"

namespace plimsoll::pretend {

/// What CUDA says about one of its errors: a row of the runtime's table, or of the driver's.
template <typename Error>
struct ErrorText {
  Error error;
  const char* name;
  const char* text;
};

/// A row whose name is the enumerator's own.
#define PLIMSOLL_ERROR(name, text) {name, #name, text}

/// The row of an error; null where the table has none.
template <typename Error, std::size_t kRows>
const ErrorText<Error>* find_error(const ErrorText<Error> (&table)[kRows], Error error) {
  for (const ErrorText<Error>& row : table) {
    if (row.error == error) return &row;
  }
  return nullptr;
}

/// The text for "not supported" when the calling thread's last such answer came from a call that is not pretended: its
/// name, so that it fails by name wherever its status surfaces. Null otherwise. `prefix`: of the library's functions.
/// The text lives until the thread's next question.
inline const char* unpretended_text(const char* prefix) {
  const std::string name = last_unpretended(prefix);
  if (name.empty()) return nullptr;
  thread_local std::string text;
  text = name + " is not pretended by Plimsoll";
  return text.c_str();
}

}  // namespace plimsoll::pretend
