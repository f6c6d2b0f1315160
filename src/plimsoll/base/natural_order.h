#pragma once

#include <string_view>

namespace plimsoll {

/// Whether `a` comes before `b` in natural order: numbers by value ("layers.2" before "layers.10"), letters without
/// case, and a module directly before its children.
bool natural_less(std::string_view a, std::string_view b);

/// The order of a container: natural, and by bytes between names that differ only in case or in leading zeros.
struct NaturalOrder {
  bool operator()(std::string_view a, std::string_view b) const {
    return natural_less(a, b) || (a < b && !natural_less(b, a));
  }
};

}  // namespace plimsoll
