#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "plimsoll/tracker/display.h"
#include "tracker/looking.h"
#include "tracker/models.h"

namespace plimsoll {

namespace {

Snapshot sample() {
  Snapshot snapshot;
  snapshot["cpu"].add("Parameter", 1536);
  snapshot["cpu"].add("Temp", 0);
  snapshot["cuda:0"].add("Parameter", 3 << 20);
  snapshot["cuda:0"].add("Temp", 1 << 19);
  return snapshot;
}

ModuleStats stats(const std::string& fqn) {
  ModuleStats made;
  made.fqn = fqn;
  made.snapshots[ModuleState::kPreForward] = {sample(), sample()};
  made.snapshots[ModuleState::kPostBackward] = {sample()};
  return made;
}

}  // namespace

TEST_CASE("a snapshot as plain text") {
  CHECK(render(sample(), Unit::B, Layout::Plain) ==
        "Device: cpu\n"
        "  Parameter: 1536 B\n"
        "  Total: 1536 B\n"
        "Device: cuda:0\n"
        "  Parameter: 3145728 B\n"
        "  Temp: 524288 B\n"
        "  Total: 3670016 B\n");
  CHECK(render(sample(), Unit::KiB, Layout::Plain).find("Total: 1.50 KiB") != std::string::npos);
  CHECK(render(Snapshot{}, Unit::B, Layout::Plain) == "No memory tracked.\n");
  CHECK(render(Snapshot{}, Unit::B, Layout::Table) == "No memory tracked.\n");
}

TEST_CASE("a snapshot as a table, without devices that round to nothing") {
  CHECK(render(sample(), Unit::MiB, Layout::Table) ==
        "Device  Parameter      Temp     Total\n"
        "------  ---------  --------  --------\n"
        "cuda:0   3.00 MiB  0.50 MiB  3.50 MiB\n");
  CHECK(render(sample(), Unit::KiB, Layout::Table) ==
        "Device    Parameter        Temp        Total\n"
        "------  -----------  ----------  -----------\n"
        "cpu        1.50 KiB    0.00 KiB     1.50 KiB\n"
        "cuda:0  3072.00 KiB  512.00 KiB  3584.00 KiB\n");
}

TEST_CASE("modules as plain text, call by call") {
  CHECK(render({stats("Net")}, {.unit = Unit::MiB}) ==
        "Module: Net\n"
        "Pre-Forward\n"
        "# 1:\n"
        "Device: cuda:0\n"
        "  Parameter: 3.00 MiB\n"
        "  Temp: 0.50 MiB\n"
        "  Total: 3.50 MiB\n"
        "# 2:\n"
        "Device: cuda:0\n"
        "  Parameter: 3.00 MiB\n"
        "  Temp: 0.50 MiB\n"
        "  Total: 3.50 MiB\n"
        "Post-Backward\n"
        "# 1:\n"
        "Device: cuda:0\n"
        "  Parameter: 3.00 MiB\n"
        "  Temp: 0.50 MiB\n"
        "  Total: 3.50 MiB\n"
        "\n");
}

TEST_CASE("modules as tables, a row for each device") {
  CHECK(render({stats("Net")}, {.unit = Unit::KiB, .layout = Layout::Table}) ==
        "Module: Net\n"
        "State & Call       Device    Parameter        Temp        Total\n"
        "-----------------  ------  -----------  ----------  -----------\n"
        "Pre-Forward # 1    cpu        1.50 KiB    0.00 KiB     1.50 KiB\n"
        "                   cuda:0  3072.00 KiB  512.00 KiB  3584.00 KiB\n"
        "Pre-Forward # 2    cpu        1.50 KiB    0.00 KiB     1.50 KiB\n"
        "                   cuda:0  3072.00 KiB  512.00 KiB  3584.00 KiB\n"
        "Post-Backward # 1  cpu        1.50 KiB    0.00 KiB     1.50 KiB\n"
        "                   cuda:0  3072.00 KiB  512.00 KiB  3584.00 KiB\n"
        "\n");
}

TEST_CASE("modules beyond the depth are left out, and the others are in natural order") {
  std::vector<ModuleStats> all;
  for (const auto* fqn :
       {"Net", "Net.layers.10", "Net.layers.9", "Net.layers", "Net.layers.9.attention", "Net.b", "Net.A"}) {
    all.push_back({.fqn = fqn});
  }
  CHECK(render(all, {.depth = 3}) ==
        "Module: Net\n\nModule: Net.A\n\nModule: Net.b\n\nModule: Net.layers\n\nModule: Net.layers.9\n\nModule: "
        "Net.layers.10\n\n");
  CHECK(render(all, {.depth = 1}) == "Module: Net\n\n");
  CHECK(render(all, {.depth = 0}) == "");
}

TEST_CASE("the natural order goes by numbers where there are numbers") {
  std::vector<std::string> names{
      "b", "a10", "a9", "a", "A1", "a09b", "a9a", "a100000000000000000000", "a99999999999999999999"};
  std::sort(names.begin(), names.end(), natural_less);
  CHECK(names == std::vector<std::string>{"a", "A1", "a9", "a9a", "a09b", "a10", "a99999999999999999999",
                                          "a100000000000000000000", "b"});
  CHECK_FALSE(natural_less("layers.1", "layers.1"));
}

TEST_CASE("units are known by their names, and no others are") {
  for (const auto unit : {Unit::B, Unit::KiB, Unit::MiB, Unit::GiB}) CHECK(parse_unit(name(unit)) == unit);
  CHECK_THROWS_WITH_AS(parse_unit("TiB"),
                       doctest::Contains("no such unit: 'TiB'. Supported units are B, KiB, MiB, GiB."),
                       c10::ValueError);
  CHECK_THROWS_WITH_AS(parse_unit(""), doctest::Contains("no such unit: ''."), c10::ValueError);
  const auto unknown = static_cast<Unit>(99);
  const auto expected = doctest::Contains("no such unit: 99. Supported units are B, KiB, MiB, GiB.");
  CHECK_THROWS_WITH_AS(name(unknown), expected, c10::ValueError);
  CHECK_THROWS_WITH_AS(render(sample(), unknown, Layout::Plain), expected, c10::ValueError);
  CHECK_THROWS_WITH_AS(render(std::vector<ModuleStats>{}, {.unit = unknown}), expected, c10::ValueError);
  MemTracker tracker;
  std::ostringstream out;
  CHECK_THROWS_WITH_AS(tracker.display_snapshot(SnapshotKind::Current, unknown, Layout::Plain, out), expected,
                       c10::ValueError);
  CHECK(out.str() == "");
}

TEST_CASE("a tracker writes what render makes of what it saw") {
  MemTracker tracker;
  models::MLP model(8, 16, 4);
  {
    const auto scope = tracker.enter();
    model(at::ones({2, 8})).sum().backward();
  }
  std::ostringstream current, peak, modules;
  tracker.display_snapshot(SnapshotKind::Current, Unit::KiB, Layout::Table, current);
  tracker.display_snapshot(SnapshotKind::Peak, Unit::B, Layout::Plain, peak);
  tracker.display_modulewise_snapshots({.depth = 1, .layout = Layout::Table}, modules);
  CHECK(current.str() == render(tracker.snapshot(), Unit::KiB, Layout::Table));
  CHECK(peak.str() == render(tracker.snapshot(SnapshotKind::Peak), Unit::B, Layout::Plain));
  CHECK(modules.str() == render(tracker.module_stats(), {.depth = 1, .layout = Layout::Table}));
  CHECK(modules.str().find("Peak-Backward # 1") != std::string::npos);
}

}  // namespace plimsoll
