#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "pretend/model/small_machine.h"

namespace test_capture {

using namespace plimsoll::pretend;

namespace {

using How = EndedCapture::How;

}  // namespace

TEST_CASE("captured work is stored, and a launch of the graph reports it") {
  Machine machine({.profile = small_profile()});
  Stream* stream = machine.create_stream(0, 0, 0);
  REQUIRE(machine.begin_capture(*stream, nullptr));
  CHECK_FALSE(machine.begin_capture(*stream, nullptr));
  int host_calls = 0;
  machine.enqueue(*stream, launch("captured"), [&] { ++host_calls; });
  CHECK(machine.launches() == 0);
  CHECK(host_calls == 0);
  Graph* graph = machine.end_capture(*stream).graph;
  REQUIRE(graph != nullptr);
  std::vector<std::string> reported;
  machine.feed().subscribe([&](const Event& event) {
    CHECK(event.replayed);
    reported.emplace_back(event.name);
  });
  machine.launch(*graph, *stream);
  machine.launch(*graph->clone(), *stream);
  CHECK(reported == std::vector<std::string>{"captured", "captured"});
  CHECK(machine.launches() == 2);
  CHECK(host_calls == 2);
  delete graph;
}

TEST_CASE("a stream that waits for a captured stream's event is in the capture until its end") {
  Machine machine({.profile = small_profile()});
  Stream* origin = machine.create_stream(0, 0, 0);
  Stream* other = machine.create_stream(0, 0, 0);
  StreamEvent* event = machine.create_event(0, 0);
  REQUIRE(machine.begin_capture(*origin, nullptr));
  machine.record(*event, *origin);
  CHECK(machine.wait(*other, *event) == Waited::kDone);
  CHECK(machine.capture_of(*other)->id == machine.capture_of(*origin)->id);
  machine.enqueue(*other, launch("joined"));
  CHECK(machine.end_capture(*other).how == How::kNotOrigin);
  machine.record(*event, *other);
  CHECK(machine.wait(*origin, *event) == Waited::kDone);
  Graph* graph = machine.end_capture(*origin).graph;
  REQUIRE(graph != nullptr);
  CHECK(graph->nodes().size() == 1);
  CHECK_FALSE(machine.capture_of(*other));
  CHECK(machine.end_capture(*origin).how == How::kNotCaptured);
  delete graph;
}

TEST_CASE("a capture fails if its origin does not wait for another stream's work") {
  Machine machine({.profile = small_profile()});
  Stream* origin = machine.create_stream(0, 0, 0);
  Stream* other = machine.create_stream(0, 0, 0);
  StreamEvent* event = machine.create_event(0, 0);
  const auto fork = [&] {
    REQUIRE(machine.begin_capture(*origin, nullptr));
    machine.enqueue(*origin, launch("first"));
    machine.record(*event, *origin);
    machine.wait(*other, *event);
  };
  fork();
  machine.enqueue(*other, launch("left alone"));
  const EndedCapture unjoined = machine.end_capture(*origin);
  CHECK(unjoined.how == How::kUnjoined);
  CHECK(unjoined.graph == nullptr);
  CHECK_FALSE(machine.capture_of(*other));
  fork();  // A stream that joined without work needs no join.
  const EndedCapture idle = machine.end_capture(*origin);
  CHECK(idle.how == How::kDone);
  delete idle.graph;
}

TEST_CASE("a wait between two captures invalidates both") {
  Machine machine({.profile = small_profile()});
  Stream* one = machine.create_stream(0, 0, 0);
  Stream* other = machine.create_stream(0, 0, 0);
  StreamEvent* event = machine.create_event(0, 0);
  REQUIRE(machine.begin_capture(*one, nullptr));
  REQUIRE(machine.begin_capture(*other, nullptr));
  machine.record(*event, *one);
  CHECK(machine.wait(*other, *event) == Waited::kAcrossCaptures);
  CHECK(machine.end_capture(*one).how == How::kInvalidated);
  CHECK(machine.end_capture(*other).how == How::kInvalidated);
}

TEST_CASE("a graph has exactly the edges that streams and events require") {
  Machine machine({.profile = small_profile()});
  Stream* origin = machine.create_stream(0, 0, 0);
  Stream* side = machine.create_stream(0, 0, 0);
  StreamEvent* fork = machine.create_event(0, 0);
  StreamEvent* join = machine.create_event(0, 0);
  REQUIRE(machine.begin_capture(*origin, nullptr));
  machine.enqueue(*origin, launch("first"));
  machine.record(*fork, *origin);
  machine.wait(*side, *fork);
  machine.enqueue(*origin, launch("left"));
  machine.enqueue(*side, launch("right"));
  machine.record(*join, *side);
  machine.wait(*origin, *join);
  machine.enqueue(*origin, launch("last"));
  Graph* graph = machine.end_capture(*origin).graph;
  const auto before = [&](std::size_t node) {
    std::vector<std::string> names;
    for (const GraphNode* dependency : graph->nodes()[node]->dependencies) names.push_back(dependency->name);
    return names;
  };
  CHECK(before(0).empty());
  CHECK(before(1) == std::vector<std::string>{"first"});
  CHECK(before(2) == std::vector<std::string>{"first"});
  CHECK(before(3) == std::vector<std::string>{"left", "right"});
  CHECK(graph->clone()->nodes()[3]->dependencies.size() == 2);
  delete graph;
}

TEST_CASE("the default stream cannot join a capture, and a destroyed stream ends its own") {
  Machine machine({.profile = small_profile()});
  Stream* stream = machine.create_stream(0, 0, 0);
  StreamEvent* event = machine.create_event(0, 0);
  REQUIRE(machine.begin_capture(*stream, nullptr));
  machine.record(*event, *stream);
  CHECK(machine.wait(machine.device(0).default_stream, *event) == Waited::kOnDefaultStream);
  CHECK_FALSE(machine.capture_of(*stream)->active);
  machine.destroy_stream(stream);
  CHECK_FALSE(machine.forbid_in_captures_of(0));
}

TEST_CASE("waiting for a captured stream invalidates the capture") {
  Machine machine({.profile = small_profile()});
  Stream* stream = machine.create_stream(0, 0, 0);
  REQUIRE(machine.begin_capture(*stream, nullptr));
  CHECK(machine.forbid_in_capture(*stream));
  CHECK(machine.end_capture(*stream).how == How::kInvalidated);
  CHECK_FALSE(machine.forbid_in_capture(*stream));
}

TEST_CASE("records and waits within a capture belong to the graph and are not reported") {
  Machine machine({.profile = small_profile()});
  Stream* origin = machine.create_stream(0, 0, 0);
  Stream* joins = machine.create_stream(0, 0, 0);
  Stream* apart = machine.create_stream(0, 0, 0);
  StreamEvent* captured = machine.create_event(0, 0);
  StreamEvent* free = machine.create_event(0, 0);
  std::vector<std::uint64_t> reported;
  machine.feed().subscribe([&](const Event& sent) { reported.push_back(sent.stream); });
  REQUIRE(machine.begin_capture(*origin, nullptr));
  machine.record(*captured, *origin);
  CHECK(machine.wait(*joins, *captured) == Waited::kDone);
  machine.record(*free, *apart);
  CHECK(machine.wait(*apart, *free) == Waited::kDone);
  CHECK(reported == std::vector<std::uint64_t>{apart->id, apart->id});
  delete machine.end_capture(*origin).graph;
}

}  // namespace test_capture
