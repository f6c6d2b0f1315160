#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "plimsoll/pretend/model/streams/feed.h"

namespace plimsoll::pretend {

/// One piece of work in a graph: the event that its execution reports, with a name of its own.
struct GraphNode {
  Event event;
  std::string name;
  std::function<void()> host_work;       ///< done at each launch, when set
  std::vector<GraphNode*> dependencies;  ///< the nodes that it waits for, of the same graph
  /// The bodies of a conditional node.
  std::vector<std::unique_ptr<class Graph>> children;
  std::vector<Graph*> child_handles;  ///< the same, for a caller to keep for as long as the node lives
};

/// Recorded work, in the order in which it was captured, each piece with the pieces that it waits for.
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

/// A capture under way. Streams that wait for an event of a captured stream join it.
/// Guarded by Machine::capture_mutex_.
struct Capture {
  enum class State { kActive, kInvalidated };

  std::uint64_t id = 0;
  Graph* graph = nullptr;
  bool owns_graph = true;  ///< false: a graph of the caller's is captured into
  State state = State::kActive;
  std::vector<struct Stream*> streams;  ///< the origin first
  /// What the next piece of work on a stream waits for.
  std::unordered_map<const struct Stream*, std::vector<GraphNode*>> ends;
};

/// A capture as it was at one moment.
struct CaptureView {
  bool active = false;  ///< false: invalidated
  std::uint64_t id = 0;
  Graph* graph = nullptr;
  std::vector<GraphNode*> ends;
};

/// What a capture came to.
struct EndedCapture {
  enum class How {
    kDone,
    kNotCaptured,  ///< the stream is in no capture
    kNotOrigin,    ///< the capture did not begin on this stream, and goes on
    kInvalidated,
    kUnjoined,  ///< work of another stream is there that the origin never waited for
  };

  How how = How::kDone;
  Graph* graph = nullptr;  ///< the caller's to delete; null unless done
};

/// What became of a stream's wait for an event.
enum class Waited {
  kDone,
  kOnDefaultStream,  ///< the default stream cannot join a capture, which is invalidated
  kAcrossCaptures,   ///< the stream is in another capture than the event; both are invalidated
};

}  // namespace plimsoll::pretend
