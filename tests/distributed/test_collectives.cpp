#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <string>

#include "distributed/ranks.h"
#include "plimsoll/distributed/collectives.h"

// A Python test compares the bits of results with torch.distributed's; this file checks the results themselves.

using namespace plimsoll::distributed;
using c10d::ReduceOp;
using ranks::on_ranks;
using ranks::Rank;

namespace {

ProcessGroup join(const Rank& rank, std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
  return init_process_group(
      {.backend = "gloo", .store = rank.store(), .rank = rank.rank, .world_size = rank.size, .timeout = timeout});
}

at::Tensor filled(std::int64_t count, double value, at::ScalarType dtype) {
  return at::full({count}, value, at::TensorOptions(dtype));
}

template <class Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const c10::DistBackendError& error) {
    return error.what_without_backtrace();
  }
  return "";
}

}  // namespace

TEST_CASE("an all-gather returns the inputs of all ranks, one after the other") {
  for (const int size : {2, 4}) {
    on_ranks(size, [](const Rank& rank) {
      const auto group = join(rank);
      for (const auto dtype : {at::kFloat, at::kBFloat16, at::kByte}) {
        const auto output = at::zeros({3 * rank.size}, at::TensorOptions(dtype));
        CHECK_FALSE(all_gather_single(output, filled(3, rank.rank + 1, dtype), group));
        for (int other = 0; other < rank.size; ++other) {
          CHECK(output.slice(0, 3 * other, 3 * other + 3).equal(filled(3, other + 1, dtype)));
        }
      }
    });
  }
}

TEST_CASE("a reduce-scatter and an all-reduce sum and average") {
  for (const int size : {2, 4}) {
    on_ranks(size, [](const Rank& rank) {
      const auto group = join(rank);
      const double sum = rank.size * (rank.size + 1) / 2.0;  // Of 1 to size.
      for (const auto dtype : {at::kFloat, at::kBFloat16}) {
        for (const bool average : {false, true}) {
          const ReduceOp op = average ? ReduceOp::AVG : ReduceOp::SUM;
          const double factor = average ? 1.0 / rank.size : 1;
          const auto input = at::repeat_interleave(at::arange(rank.size, at::kDouble), 5).to(dtype) * (rank.rank + 1);
          const auto output = filled(5, -1, dtype);
          CHECK_FALSE(reduce_scatter_single(output, input, group, op));
          CHECK(output.equal(filled(5, rank.rank * sum * factor, dtype)));
          const auto reduced = filled(5, rank.rank + 1, dtype);
          CHECK_FALSE(all_reduce(reduced, group, op));
          CHECK(reduced.equal(filled(5, sum * factor, dtype)));
        }
      }
    });
  }
}

TEST_CASE("an asynchronous collective is complete after its wait") {
  on_ranks(2, [](const Rank& rank) {
    const auto group = join(rank);
    const auto gathered = at::zeros({2});
    const auto reduced = filled(4, 1, at::kFloat);
    const auto part = at::zeros({2});
    const Work gathering = all_gather_single(gathered, filled(1, rank.rank, at::kFloat), group, true);
    const Work reducing = all_reduce(reduced, group, ReduceOp::SUM, true);
    const Work scattering = reduce_scatter_single(part, at::ones({4}), group, ReduceOp::SUM, true);
    REQUIRE((gathering && reducing && scattering));
    wait(gathering, group, "all_gather_single");
    wait(reducing, group, "all_reduce");
    wait(scattering, group, "reduce_scatter_single");
    CHECK(gathered.equal(at::arange(2, at::kFloat)));
    CHECK(reduced.equal(filled(4, 2, at::kFloat)));
    CHECK(part.equal(filled(2, 2, at::kFloat)));
  });
}

TEST_CASE("a broadcast returns the root's numbers, a barrier lets all ranks through") {
  on_ranks(4, [](const Rank& rank) {
    const auto group = join(rank);
    const auto tensor = filled(3, rank.rank, at::kFloat);
    broadcast(tensor, group, 2);
    CHECK(tensor.equal(filled(3, 2, at::kFloat)));
    barrier(group);
    destroy_process_group();
  });
}

TEST_CASE("a failed collective reports its name, its purpose, the ranks and the bytes") {
  on_ranks(2, [](const Rank& rank) {
    const auto group = join(rank);
    const std::string here = " on rank " + std::to_string(rank.rank) + " of the group of ranks 0, 1 ";
    CHECK(error_of([&] { all_gather_single(at::zeros({3}), at::zeros({2}), group, false, "'layers.0'"); }) ==
          "all_gather_single for 'layers.0'" + here +
              "(12 bytes) failed: the output must have 4 elements, 2 times the input's 2, but has 3");
    CHECK(error_of([&] { reduce_scatter_single(at::zeros({3}), at::zeros({8}), group, ReduceOp::SUM); }) ==
          "reduce_scatter_single" + here +
              "(32 bytes) failed: the input must have 6 elements, 2 times the output's 3, but has 8");
    CHECK(error_of([&] {
            all_reduce(at::zeros({2}), group, ReduceOp::BXOR, false, "a sum");
          }).starts_with("all_reduce for a sum" + here + "(8 bytes) failed: "));
    CHECK(
        error_of([&] { broadcast(at::zeros({2}), group, 9); }).starts_with("broadcast" + here + "(8 bytes) failed: "));
  });
}

TEST_CASE("a collective over a null group is an error") {
  CHECK_THROWS_WITH_AS(barrier(nullptr, "a test"), doctest::Contains("barrier for a test: the process group is null."),
                       c10::ValueError);
}

TEST_CASE("if a rank dies, the other ranks' collective fails with its name") {
  on_ranks(4, [](const Rank& rank) {
    const auto group = join(rank, std::chrono::seconds(3));
    const auto tensor = filled(1 << 20, 1, at::kFloat);
    all_reduce(tensor, group, ReduceOp::SUM);
    if (rank.rank == 2) {
      rank.die();
    }
    const auto error = error_of([&] {
      all_gather_single(at::empty({1 << 22}), tensor, group, false, "'blocks.1'");
      all_gather_single(at::empty({1 << 22}), tensor, group, false,
                        "'blocks.1'");  // The first one may have been sent already.
    });
    CHECK(error.starts_with("all_gather_single for 'blocks.1' on rank " + std::to_string(rank.rank) +
                            " of the group of ranks 0 to 3 (16777216 bytes) failed: "));
  });
}

TEST_CASE("with a missing rank, an asynchronous collective fails after the timeout, at the wait") {
  on_ranks(2, [](const Rank& rank) {
    const auto group = join(rank, std::chrono::milliseconds(500));
    if (rank.rank == 1) {
      rank.store()->wait({"the other has given up"}, std::chrono::seconds(20));
      return;
    }
    const auto tensor = at::ones({4});
    const Work work = all_reduce(tensor, group, ReduceOp::SUM, true, "gradients");
    const auto error = error_of([&] { wait(work, group, "all_reduce", "gradients"); });
    CHECK(error.starts_with("all_reduce for gradients on rank 0 of the group of ranks 0, 1 failed: "));
    rank.store()->set("the other has given up", std::vector<std::uint8_t>{1});
  });
}
