#include "plimsoll/pretend/model/streams/graph.h"

#include <algorithm>
#include <utility>

namespace plimsoll::pretend {

Graph::Graph() = default;
Graph::~Graph() = default;

GraphNode& Graph::add(const Event& event, std::vector<GraphNode*> dependencies) {
  auto node = std::make_unique<GraphNode>();
  node->event = event;
  node->name = event.name;
  node->event.name = node->name.c_str();
  node->dependencies = std::move(dependencies);
  nodes_.push_back(std::move(node));
  return *nodes_.back();
}

bool Graph::contains(const GraphNode* node) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [node](const auto& own) { return own.get() == node; });
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>();
  std::unordered_map<const GraphNode*, GraphNode*> counterpart;
  for (const auto& node : nodes_) {
    GraphNode& added = copy->add(node->event);
    counterpart[node.get()] = &added;
    for (const GraphNode* dependency : node->dependencies) added.dependencies.push_back(counterpart.at(dependency));
    added.host_work = node->host_work;
    for (const auto& child : node->children) {
      added.children.push_back(child->clone());
      added.child_handles.push_back(added.children.back().get());
    }
  }
  return copy;
}

}  // namespace plimsoll::pretend
