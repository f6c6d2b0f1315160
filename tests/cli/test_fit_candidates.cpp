#include <doctest/doctest.h>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/search/fit_search.h"
#include "plimsoll/job/model.h"

namespace test_fit_candidates {

using namespace plimsoll::cli;
using plimsoll::InvalidArgument;
using plimsoll::job::Job;

namespace {

FitField field(const FitRange& range, const Job& job = {}, const std::string& model = "llama3-8b") {
  return fit_field(range, job, plimsoll::job::find_model(model));
}

std::vector<std::int64_t> values(const FitField& field) {
  std::vector<std::int64_t> list;
  for (std::int64_t place = 0; place < field.candidates.count; ++place) list.push_back(field.candidates.value(place));
  return list;
}

using Values = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("batches are whole numbers up to the limit") {
  CHECK(values(field({.search = Search::kBatch, .limit = 5})) == Values{1, 2, 3, 4, 5});
  CHECK(values(field({.search = Search::kBatch, .limit = 9, .multiple = 4})) == Values{4, 8});
  CHECK(field({.search = Search::kBatch}).candidates.count == 65'536);
  CHECK(field({.search = Search::kBatch}).note.empty());
}

TEST_CASE("sequences are multiples of 128, and not longer than the positions that a model learns") {
  const FitField rotary = field({.search = Search::kSeqLen, .limit = 500});
  CHECK(rotary.name == "seq-len");
  CHECK(values(rotary) == Values{128, 256, 384});
  CHECK(rotary.note == "Only multiples of 128 were tried.");
  const FitField learnt = field({.search = Search::kSeqLen, .multiple = 300}, {}, "gpt2");
  CHECK(values(learnt) == Values{300, 600, 900});
  CHECK(learnt.note ==
        "The largest possible value is 900: --seq-len 1200 is longer than the 1024 positions that the model learns. "
        "Only multiples of 300 were tried.");
}

TEST_CASE("GPUs are each number up to one machine, then whole machines") {
  const FitField all = field({.search = Search::kGpus, .limit = 32});
  CHECK(values(all) == Values{1, 2, 3, 4, 5, 6, 7, 8, 16, 24, 32});
  CHECK(all.note == "Searched: 1 to 8 GPUs, then multiples of 8 up to 32.");
  CHECK(field({.search = Search::kGpus, .limit = 4}).note == "Searched: up to 4 GPUs.");
  const FitField some = field({.search = Search::kGpus, .limit = 16}, {.replicas = 4});
  CHECK(values(some) == Values{4, 8, 16});
  CHECK(some.note ==
        "Searched: 1 to 8 GPUs, then multiples of 8 up to 16, except numbers that the job's other settings exclude.");
  const FitField fours = field({.search = Search::kGpus, .limit = 12, .multiple = 4});
  CHECK(values(fours) == Values{4, 8, 12});
  CHECK(fours.note == "Searched: multiples of 4 GPUs up to 12.");
}

TEST_CASE("a search with nothing to try is refused") {
  CHECK_THROWS_WITH_AS(field({.search = Search::kSeqLen, .limit = 100}),
                       "--limit 100 is below the first value, 128: give a larger --limit or a smaller --multiple",
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(
      field({.search = Search::kGpus, .limit = 4}, {.rank = 9}),
      "no number of GPUs up to 4 is possible: --rank 9 does not exist: the ranks of --gpus 4 are 0 to 3",
      InvalidArgument);
  CHECK_THROWS_WITH_AS(field({.search = Search::kGpus, .limit = 1 << 21}),
                       "--limit must be at most 1048576 GPUs, found 2097152", InvalidArgument);
  CHECK_THROWS_WITH_AS(field({.search = Search::kBatch}, {.gpus = 8, .replicas = 3}),
                       doctest::Contains("--replicas 3 does not divide --gpus 8"), InvalidArgument);
}

}  // namespace test_fit_candidates
