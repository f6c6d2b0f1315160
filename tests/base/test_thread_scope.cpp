#include <doctest/doctest.h>

#include <thread>

#include "plimsoll/base/thread_scope.h"

namespace test_thread_scope {

using plimsoll::ThreadScope;

class Digging : public ThreadScope<Digging> {};
class Resting : public ThreadScope<Resting> {};

TEST_CASE("a scope is under way until the outermost of its kind has ended") {
  CHECK(!Digging::under_way());
  {
    const Digging outer;
    {
      const Digging inner;
      CHECK(Digging::under_way());
    }
    CHECK(Digging::under_way());
  }
  CHECK(!Digging::under_way());
}

TEST_CASE("a scope says nothing of another kind, nor of another thread") {
  const Digging here;
  bool there = true;
  std::thread([&] { there = Digging::under_way(); }).join();
  CHECK(!there);
  CHECK(!Resting::under_way());
}

}  // namespace test_thread_scope
