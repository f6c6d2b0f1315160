#include <doctest/doctest.h>

#include <thread>

#include "plimsoll/base/thread_scope.h"

namespace test_thread_scope {

using plimsoll::ThreadScope;

class Digging : public ThreadScope<Digging> {};
class Resting : public ThreadScope<Resting> {};

TEST_CASE("a scope is active until the outermost scope of its kind ends") {
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

TEST_CASE("a scope does not affect another kind or another thread") {
  const Digging here;
  bool there = true;
  std::thread([&] { there = Digging::under_way(); }).join();
  CHECK(!there);
  CHECK(!Resting::under_way());
}

}  // namespace test_thread_scope
