#include <doctest/doctest.h>

#include <vector>

#include "plimsoll/pretend/model/visible_devices.h"
#include "pretend/model/small_machine.h"

namespace test_visible_devices {

using namespace plimsoll::pretend;

using Cards = std::vector<int>;

TEST_CASE("cards are shown in the order of their numbers in the text") {
  CHECK(visible_devices("0", 4) == Cards{0});
  CHECK(visible_devices("2,0,3", 4) == Cards{2, 0, 3});
  CHECK(visible_devices(" 1, +2,3gpu", 4) == Cards{1, 2, 3});
}

TEST_CASE("the first entry that matches no card ends the list") {
  CHECK(visible_devices("1,4,2", 4) == Cards{1});
  CHECK(visible_devices("1,-1,2", 4) == Cards{1});
  CHECK(visible_devices("0,,1", 4) == Cards{0});
  CHECK(visible_devices("0,99999999999999999999", 4) == Cards{0});
  CHECK(visible_devices("3,GPU-706c696d", 4) == Cards{3});
}

TEST_CASE("an empty text, or a text with a card twice, shows no card") {
  CHECK(visible_devices("", 4).empty());
  CHECK(visible_devices("-1", 4).empty());
  CHECK(visible_devices("NoDevFiles", 4).empty());
  CHECK(visible_devices("1,2,1", 4).empty());
  CHECK(visible_devices(uuid_text(1) + "," + uuid_text(1), 4).empty());
}

TEST_CASE("an identifier can be shortened to a unique prefix") {
  CHECK(visible_devices(uuid_text(3) + "," + uuid_text(1), 4) == Cards{3, 1});
  CHECK(visible_devices("GPU-706c696d", 1) == Cards{0});
  CHECK(visible_devices("GPU-706c696d", 2).empty());
  CHECK(visible_devices(uuid_text(1) + ",0", 2) == Cards{1});
  CHECK(visible_devices(uuid_text(7), 4).empty());
}

TEST_CASE("a machine's devices are the visible cards, numbered from 0") {
  Machine machine({.profile = small_profile(), .cards = 4, .shown = Cards{2, 0}});
  REQUIRE(machine.device_count() == 2);
  CHECK(machine.device(0).index == 0);
  CHECK(machine.device(0).card == 2);
  CHECK(machine.device(1).card == 0);
  CHECK(machine.device_of_card(0) == &machine.device(1));
  CHECK(machine.device_of_card(3) == nullptr);
}

TEST_CASE("a machine without visible cards has no device and no memory") {
  Machine machine({.profile = small_profile(), .cards = 2, .shown = Cards{}});
  CHECK(machine.device_count() == 0);
  CHECK(machine.device_of_card(0) == nullptr);
  CHECK_FALSE(machine.device(0).memory.allocate(1_MiB));
  CHECK_FALSE(machine.device(0).ensure_context(machine.profile()));
}

}  // namespace test_visible_devices
