#include "plimsoll/pretend/model/graph.h"

namespace plimsoll::pretend {

GraphNode& Graph::add(const Event& event) {
  auto node = std::make_unique<GraphNode>();
  node->event = event;
  node->name = event.name;
  node->event.name = node->name.c_str();
  if (!nodes_.empty()) node->previous = nodes_.back().get();
  nodes_.push_back(std::move(node));
  return *nodes_.back();
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>();
  for (const auto& node : nodes_) {
    GraphNode& added = copy->add(node->event);
    added.host_function = node->host_function;
    added.host_argument = node->host_argument;
    if (node->child) added.child = node->child->clone();
  }
  return copy;
}

}  // namespace plimsoll::pretend
