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
  CHECK(render(sample(), ByteUnit::kB, Layout::kPlain) ==
        "Device: cpu\n"
        "  Parameter: 1536 B\n"
        "  Total: 1536 B\n"
        "Device: cuda:0\n"
        "  Parameter: 3145728 B\n"
        "  Temp: 524288 B\n"
        "  Total: 3670016 B\n");
  CHECK(render(sample(), ByteUnit::kKiB, Layout::kPlain).find("Total: 1.50 KiB") != std::string::npos);
  CHECK(render(Snapshot{}, ByteUnit::kB, Layout::kPlain) == "No memory tracked.\n");
  CHECK(render(Snapshot{}, ByteUnit::kB, Layout::kTable) == "No memory tracked.\n");
}

TEST_CASE("a snapshot as a table leaves out devices that round to zero") {
  CHECK(render(sample(), ByteUnit::kMiB, Layout::kTable) ==
        "Device  Parameter      Temp     Total\n"
        "------  ---------  --------  --------\n"
        "cuda:0   3.00 MiB  0.50 MiB  3.50 MiB\n");
  CHECK(render(sample(), ByteUnit::kKiB, Layout::kTable) ==
        "Device    Parameter        Temp        Total\n"
        "------  -----------  ----------  -----------\n"
        "cpu        1.50 KiB    0.00 KiB     1.50 KiB\n"
        "cuda:0  3072.00 KiB  512.00 KiB  3584.00 KiB\n");
}

TEST_CASE("modules as plain text, call by call") {
  CHECK(render({stats("Net")}, {.unit = ByteUnit::kMiB}) ==
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
  CHECK(render({stats("Net")}, {.unit = ByteUnit::kKiB, .layout = Layout::kTable}) ==
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

TEST_CASE("modules below the depth are left out, and the others are in natural order") {
  std::vector<ModuleStats> all;
  for (const auto* fqn :
       {"Net", "Net.layers.10", "Net.layers.9", "Net.layers", "Net.layers.9.attention", "Net.b", "Net.A"}) {
    all.push_back({{.fqn = fqn}});
  }
  CHECK(render(all, {.depth = 3}) ==
        "Module: Net\n\nModule: Net.A\n\nModule: Net.b\n\nModule: Net.layers\n\nModule: Net.layers.9\n\nModule: "
        "Net.layers.10\n\n");
  CHECK(render(all, {.depth = 1}) == "Module: Net\n\n");
  CHECK(render(all, {.depth = 0}) == "");
}

TEST_CASE("a tracker displays its snapshots as render does") {
  MemTracker tracker;
  models::MLP model(8, 16, 4);
  {
    const auto scope = tracker.enter();
    model(at::ones({2, 8})).sum().backward();
  }
  std::ostringstream current, peak, modules;
  tracker.display_snapshot(SnapshotKind::kCurrent, ByteUnit::kKiB, Layout::kTable, current);
  tracker.display_snapshot(SnapshotKind::kPeak, ByteUnit::kB, Layout::kPlain, peak);
  tracker.display_modulewise_snapshots({.depth = 1, .layout = Layout::kTable}, modules);
  CHECK(current.str() == render(tracker.snapshot(), ByteUnit::kKiB, Layout::kTable));
  CHECK(peak.str() == render(tracker.snapshot(SnapshotKind::kPeak), ByteUnit::kB, Layout::kPlain));
  CHECK(modules.str() == render(tracker.module_stats(), {.depth = 1, .layout = Layout::kTable}));
  CHECK(modules.str().find("Peak-Backward # 1") != std::string::npos);
}

}  // namespace plimsoll
