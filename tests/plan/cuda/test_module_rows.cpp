#include <doctest/doctest.h>

#include "plimsoll/plan/module_rows.h"

using plimsoll::plan::path_of;

TEST_CASE("a module's path is what people know: without the root and without the wrapper of a checkpoint") {
  CHECK(path_of("LanguageModel") == "");
  CHECK(path_of("LanguageModel.layers.3") == "layers.3");
  CHECK(path_of("LanguageModel.layers.3.block.attention.wq") == "layers.3.attention.wq");
  CHECK(path_of("layers.3.block") == "layers.3");
}
