#pragma once

#include <stdexcept>

namespace plimsoll {

/// What was asked for makes no sense. The message says what was expected, what was found and what to do.
class InvalidArgument : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// A file or text is not of the form it claims to be.
class FormatError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An invariant of ours is broken: a bug here, never the user's fault.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace plimsoll
