#pragma once

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace plimsoll {

/// The user's input is wrong. The message says what was expected, what was found and what to do.
class InvalidArgument : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// A file or text does not have the expected form.
class FormatError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The operating system refused a call: a full disk, a missing right, too many processes.
class SystemError : public std::runtime_error {
 public:
  /// "message: No space left on device". `note` follows the reason.
  explicit SystemError(const std::string& message, int error = errno, const std::string& note = {})
      : std::runtime_error(message + ": " + std::strerror(error) + note), error_(error) {}

  int error() const { return error_; }

 private:
  int error_;
};

/// A broken invariant: a defect of Plimsoll.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace plimsoll
