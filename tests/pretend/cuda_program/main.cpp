#include <doctest/doctest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("PLIMSOLL_GPUS", "4", 1);  // Read at the first use of the machine.
  return doctest::Context(argc, argv).run();
}
