#pragma once

#include <cstddef>

namespace plimsoll::capture {

/// The live bytes of torch's CPU allocator since the start of the program, counted below every tap, independent of the
/// tap.
std::size_t counted_cpu_bytes();

}  // namespace plimsoll::capture
