#include <doctest/doctest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("PLIMSOLL_GPUS", "4", 1);  // read at the machine's first use
  return doctest::Context(argc, argv).run();
}
