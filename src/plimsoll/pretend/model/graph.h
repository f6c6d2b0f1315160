#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/pretend/model/feed.h"

namespace plimsoll::pretend {

/// One piece of work in a graph: the event that its execution reports, with a name of its own.
struct GraphNode {
  Event event;
  std::string name;
  void (*host_function)(void*) = nullptr;  ///< run at each launch, when set
  void* host_argument = nullptr;
  GraphNode* previous = nullptr;       ///< the node it follows; none for the first
  std::unique_ptr<class Graph> child;  ///< the body of a conditional node
};

/// A recorded sequence of work. Nodes keep the order in which they were captured; edges between them are that order.
class Graph {
 public:
  GraphNode& add(const Event& event);
  const std::vector<std::unique_ptr<GraphNode>>& nodes() const { return nodes_; }
  std::unique_ptr<Graph> clone() const;

 private:
  std::vector<std::unique_ptr<GraphNode>> nodes_;
};

/// A capture under way. Streams that wait for an event of a captured stream join it.
/// Guarded by Machine::capture_mutex().
class Capture {
 public:
  enum class State { kActive, kInvalidated };

  Capture(std::uint64_t id, int mode, Graph* graph, bool owns_graph) : id(id), mode(mode), graph(graph), owns_graph(owns_graph) {}

  const std::uint64_t id;
  const int mode;
  Graph* const graph;
  const bool owns_graph;  ///< false: capture into a graph of the caller's
  State state = State::kActive;
  std::vector<struct Stream*> streams;  ///< the origin first
};

}  // namespace plimsoll::pretend
