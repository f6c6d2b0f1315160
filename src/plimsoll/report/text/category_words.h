#pragma once

#include <string>
#include <string_view>

namespace plimsoll::report {

/// What memory of a category is, in a few words for someone who meets it for the first time; "" for one that is not
/// known.
std::string category_words(std::string_view category);

}  // namespace plimsoll::report
