#pragma once

#include <cstddef>

namespace plimsoll::capture {

/// What torch's CPU allocator has handed out and not got back, counted below every tap: the tests' independent count.
/// Counts from the start of the program.
std::size_t counted_cpu_bytes();

}  // namespace plimsoll::capture
