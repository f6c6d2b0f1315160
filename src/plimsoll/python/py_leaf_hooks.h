#pragma once

namespace plimsoll::python {

/// Puts hooks on leaves as Python does, beside those that the script has put there (nn::set_leaf_hooks).
void install_leaf_hooks();

}  // namespace plimsoll::python
