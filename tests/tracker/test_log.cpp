#include <doctest/doctest.h>

#include "plimsoll/ledger/log.h"
#include "plimsoll/nn/optim/adamw.h"
#include "plimsoll/tracker/mem_tracker.h"
#include "tracker/looking.h"
#include "tracker/models.h"

namespace plimsoll {

TEST_CASE("the log of a run, replayed, gives its balances and peaks") {
  ledger::Log log;
  MemTracker tracker({.log = &log});
  models::Transformer model(models::TransformerOptions{.layers = 2, .checkpoint = true});
  nn::AdamW optimizer(model->parameters());
  tracker.track_external(model, optimizer);
  const auto cache = at::ones({3});
  tracker.categorise(cache, "KV cache");
  const auto scope = tracker.enter();
  for (int step = 0; step < 3; ++step) {
    model(at::arange(40).view({2, 20})).sum().backward();
    optimizer.step();
    optimizer.zero_grad();
  }
  const auto now = tracker.snapshot().at("cpu"), peak = tracker.snapshot(SnapshotKind::kPeak).at("cpu");
  const auto books = ledger::replay(log, {});
  ledger::DeviceId cpu{0};
  if (books.name(cpu) != "cpu") cpu = ledger::DeviceId{1};  // After a GPU, if there is one.
  REQUIRE(books.name(cpu) == "cpu");
  const auto check = [&](const ledger::Balance& balance, const DeviceSnapshot& expected) {
    CHECK(static_cast<std::int64_t>(balance.total()) == expected.total());
    for (const auto& [category, bytes] : expected.categories()) {
      std::int64_t found = 0;
      for (std::size_t i = 0; i < books.categories(); ++i) {
        const ledger::CategoryId id{static_cast<std::uint8_t>(i)};
        if (books.name(id) == category) found = static_cast<std::int64_t>(balance[id]);
      }
      CHECK(found == bytes);
    }
  };
  check(books.balance(cpu), now);
  check(books.run_peak(cpu).balance, peak);
  const auto steps = tracker.step_peaks();
  REQUIRE(books.finished_steps(cpu).size() + 1 == steps.size());
  for (std::size_t i = 0; i + 1 < steps.size(); ++i)
    check(books.finished_steps(cpu)[i].balance, steps[i].peak.at("cpu"));
  CHECK(books.defects() == 0);
  CHECK(books.contents(books.run_peak(cpu)).allocations.size() == tracker.alive_at_peak("cpu").size());
}

}  // namespace plimsoll
