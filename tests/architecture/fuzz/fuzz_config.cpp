// Reads changed configs for so many seconds; what is neither read nor refused ends the program. The seed is printed,
// and can be given to repeat a run.
//   fuzz_config SECONDS [SEED]
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>

#include "architecture/fuzzed_configs.h"
#include "plimsoll/architecture/config_json.h"
#include "plimsoll/base/errors.h"

int main(int count, char** values) {
  using namespace plimsoll;
  using namespace plimsoll::architecture;
  if (count < 2) {
    std::cerr << "usage: " << values[0] << " SECONDS [SEED]\n";
    return 2;
  }
  const auto seed =
      count > 2 ? static_cast<std::uint32_t>(std::strtoul(values[2], nullptr, 10)) : std::random_device()();
  std::cout << "seed " << seed << std::endl;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(values[1]));
  FuzzedConfigs configs(seed);
  long read = 0, refused = 0;
  while (std::chrono::steady_clock::now() < end) {
    const auto text = configs.next();
    try {
      if (count_parameters(read_config(text, "fuzzed")).total <= 0) {
        std::cerr << "read as a model without parameters: " << text << "\n";
        return 1;
      }
      ++read;
    } catch (const FormatError&) {
      ++refused;
    } catch (const std::exception& error) {
      std::cerr << error.what() << "\nfor " << text << "\n";
      return 1;
    }
  }
  std::cout << read << " read, " << refused << " refused\n";
  return read > 0 && refused > 0 ? 0 : 1;
}
