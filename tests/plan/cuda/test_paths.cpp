#include <doctest/doctest.h>

#include "plimsoll/plan/paths.h"

using plimsoll::plan::path_of;

TEST_CASE("a module's path has no root and no checkpoint wrapper") {
  CHECK(path_of("LanguageModel") == "");
  CHECK(path_of("LanguageModel.layers.3") == "layers.3");
  CHECK(path_of("LanguageModel.layers.3.block.attention.wq") == "layers.3.attention.wq");
  CHECK(path_of("layers.3.block") == "layers.3");
}

TEST_CASE("paths in a text are readable, and blocks that are sharded together are a range") {
  using plimsoll::plan::with_readable_paths;
  CHECK(with_readable_paths("LanguageModel.layers.8, LanguageModel.layers.9, LanguageModel.layers.10 runs") ==
        "layers.8-10 runs");
  CHECK(with_readable_paths("of LanguageModel (1 GiB) and LanguageModel.layers.31") ==
        "of the root (1 GiB) and layers.31");
  CHECK(with_readable_paths("LanguageModel.layers.1, LanguageModel.layers.3") == "layers.1, layers.3");
  CHECK(with_readable_paths("LanguageModel.layers.1.block.attention") == "layers.1.attention");
}
