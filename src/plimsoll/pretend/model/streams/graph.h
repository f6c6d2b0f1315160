#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "plimsoll/pretend/model/streams/feed.h"

namespace plimsoll::pretend {

/// One piece of work in a graph: the event that it reports, with a copy of the name.
struct GraphNode {
  Event event;
  std::string name;
  std::function<void()> host_work;       ///< Runs at each launch, if set.
  std::vector<GraphNode*> dependencies;  ///< The nodes of the same graph that it waits for.
  /// The bodies of a conditional node.
  std::vector<std::unique_ptr<class Graph>> children;
  std::vector<Graph*> child_handles;  ///< The same as pointers, valid as long as the node, for the caller.
};

/// Recorded work in the order of capture, each piece with its dependencies.
class Graph {
 public:
  Graph();
  ~Graph();
  GraphNode& add(const Event& event, std::vector<GraphNode*> dependencies = {});
  const std::vector<std::unique_ptr<GraphNode>>& nodes() const { return nodes_; }
  bool contains(const GraphNode* node) const;
  std::unique_ptr<Graph> clone() const;

 private:
  std::vector<std::unique_ptr<GraphNode>> nodes_;
};

/// An active capture. A stream that waits for an event of a captured stream joins it. Guarded by
/// Machine::capture_mutex_.
struct Capture {
  enum class State { kActive, kInvalidated };

  std::uint64_t id = 0;
  Graph* graph = nullptr;
  bool owns_graph = true;  ///< False: the capture adds to the caller's graph.
  State state = State::kActive;
  std::vector<struct Stream*> streams;  ///< The origin is the first.
  /// The dependencies of the next work on each stream.
  std::unordered_map<const struct Stream*, std::vector<GraphNode*>> ends;
};

/// A capture at one moment.
struct CaptureView {
  bool active = false;  ///< False: invalidated.
  std::uint64_t id = 0;
  Graph* graph = nullptr;
  std::vector<GraphNode*> ends;
};

/// The result of a capture.
struct EndedCapture {
  enum class How {
    kDone,
    kNotCaptured,  ///< The stream is not captured.
    kNotOrigin,    ///< The capture began on another stream, and continues.
    kInvalidated,
    kUnjoined,  ///< The origin did not wait for the work of another stream.
  };

  How how = How::kDone;
  Graph* graph = nullptr;  ///< Owned by the caller; null unless done.
};

/// The result of a stream's wait for an event.
enum class Waited {
  kDone,
  kOnDefaultStream,  ///< The default stream cannot join a capture, which is invalidated.
  kAcrossCaptures,   ///< The stream and the event are in different captures; both are invalidated.
};

}  // namespace plimsoll::pretend
