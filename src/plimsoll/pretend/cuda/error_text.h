#pragma once

#include <cstddef>
#include <string>

#include "plimsoll/pretend/model/library_call.h"

namespace plimsoll::pretend {

/// A row of the runtime's or the driver's table of errors.
template <typename Error>
struct ErrorText {
  Error error;
  const char* name;
  const char* text;
};

/// A row with the enumerator as the name.
#define PLIMSOLL_ERROR(name, text) {name, #name, text}

/// The row of an error; null if the table does not have it.
template <typename Error, std::size_t kRows>
const ErrorText<Error>* find_error(const ErrorText<Error> (&table)[kRows], Error error) {
  for (const ErrorText<Error>& row : table) {
    if (row.error == error) return &row;
  }
  return nullptr;
}

/// The text for "not supported" if the calling thread's last such error came from an unimplemented function: it names
/// that function. Null otherwise. `prefix` is that of the library's functions. The text is valid until the thread's
/// next call.
inline const char* unpretended_text(const char* prefix) {
  const std::string name = last_unpretended(prefix);
  if (name.empty()) return nullptr;
  thread_local std::string text;
  text = name + " is not implemented by Plimsoll";
  return text.c_str();
}

}  // namespace plimsoll::pretend
