#include "plimsoll/nn/module_contents.h"

#include <c10/util/Type.h>

#include <string_view>
#include <typeinfo>

namespace plimsoll::nn {
namespace {

const ForeignModule* as_foreign(const torch::nn::Module& module) { return dynamic_cast<const ForeignModule*>(&module); }

std::vector<at::Tensor> defined_of(std::vector<at::Tensor> tensors) {
  std::erase_if(tensors, [](const at::Tensor& tensor) { return !tensor.defined(); });
  return tensors;
}

int depth_change(char c) {
  if (c == '<' || c == '(' || c == '{') return 1;
  if (c == '>' || c == ')' || c == '}') return -1;
  return 0;
}

// The first template argument of Hooked<Impl, F>.
std::string_view wrapped_class(std::string_view type) {
  constexpr std::string_view kWrapper = "plimsoll::nn::Hooked<";
  if (!type.starts_with(kWrapper)) return type;
  type.remove_prefix(kWrapper.size());
  int depth = 0;
  for (std::size_t i = 0; i < type.size(); ++i) {
    if (depth == 0 && (type[i] == ',' || type[i] == '>')) return type.substr(0, i);
    depth += depth_change(type[i]);
  }
  return type;
}

// The part after the last "::" that is not inside brackets.
std::string_view without_scopes(std::string_view type) {
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < type.size(); ++i) {
    depth += depth_change(type[i]);
    if (depth == 0 && type.substr(i).starts_with("::")) begin = i + 2;
  }
  return type.substr(begin);
}

}  // namespace

NamedModules children_of(const torch::nn::Module& module) {
  if (const auto* foreign = as_foreign(module)) return foreign->own_children();
  NamedModules children;
  for (const auto& child : module.named_children()) children.emplace_back(child.key(), child.value());
  return children;
}

std::vector<at::Tensor> parameters_of(const torch::nn::Module& module) {
  if (const auto* foreign = as_foreign(module)) return foreign->own_parameters();
  return defined_of(module.parameters(/*recurse=*/false));
}

std::vector<at::Tensor> buffers_of(const torch::nn::Module& module) {
  if (const auto* foreign = as_foreign(module)) return foreign->own_buffers();
  return defined_of(module.buffers(/*recurse=*/false));
}

std::string class_name(const torch::nn::Module& module) {
  if (const auto* foreign = dynamic_cast<const ForeignModule*>(&module)) return foreign->type_name();
  const std::string demangled = c10::demangle(typeid(module).name());
  const std::string_view name = without_scopes(wrapped_class(demangled));
  const std::size_t arguments = name.find('<');
  std::string result(name.substr(0, arguments));
  if (result.size() > 4 && result.ends_with("Impl")) result.resize(result.size() - 4);
  if (arguments != std::string_view::npos) result += name.substr(arguments);
  return result;
}

}  // namespace plimsoll::nn
