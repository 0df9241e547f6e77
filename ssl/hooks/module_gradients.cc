// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/module_gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/square.h>
#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <optional>
#include <set>
#include <utility>

namespace ssl {
namespace {

using torch::autograd::Edge;
using torch::autograd::Node;
using torch::autograd::variable_list;

// Operations on a parameter alone that stand between it and the one that uses it: transposes and casts, and what makes
// a dense matrix of a convolution's weight (ssl/models/layers.cc).
constexpr int kMostTransformations = 16;

std::string ModuleOf(const std::string& parameter) {
  const size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? parameter : parameter.substr(0, dot);
}

}  // namespace

struct ModuleGradients::Sums {
  // of gradient: of an operation of `module`.
  void Add(const std::string& module, const at::Tensor& gradient) {
    const at::NoGradGuard no_grad;
    // Sums of short formats in float32; float64 is not made narrower within the sum.
    const at::ScalarType type = c10::promoteTypes(gradient.scalar_type(), at::kFloat);
    const at::Tensor norm = at::linalg_vector_norm(gradient, 2.0, std::nullopt, /*keepdim=*/false, type);
    const at::Tensor square = at::square(norm / scale);
    const auto [sum, is_new] = squares.emplace(module, square);
    if (!is_new) sum->second = sum->second + square;
  }

  at::Tensor scale;  // of the pass in progress: by what its gradients are too large
  std::map<std::string, at::Tensor> squares;
};

namespace {

// What comes in at the loss is the loss scale, divided by the number of batches.
template <class Sums>
class ReadScale : public torch::autograd::FunctionPreHook {
 public:
  ReadScale(std::shared_ptr<Sums> sums, int64_t batches) : sums_(std::move(sums)), batches_(batches) {}

  variable_list operator()(const variable_list& gradients) override {
    const at::NoGradGuard no_grad;
    sums_->scale = gradients[0].detach().to(at::kFloat) * static_cast<double>(batches_);
    return gradients;
  }

 private:
  const std::shared_ptr<Sums> sums_;
  const int64_t batches_;
};

template <class Sums>
class ReadOutput : public torch::autograd::FunctionPreHook {
 public:
  ReadOutput(std::shared_ptr<Sums> sums, std::string module) : sums_(std::move(sums)), module_(std::move(module)) {}

  variable_list operator()(const variable_list& gradients) override {
    if (!gradients.empty() && gradients[0].defined()) sums_->Add(module_, gradients[0]);
    return gradients;
  }

 private:
  const std::shared_ptr<Sums> sums_;
  const std::string module_;
};

template <class Sums>
class ReadInput : public torch::autograd::FunctionPostHook {
 public:
  // input: which of the operation's inputs is the module's.
  ReadInput(std::shared_ptr<Sums> sums, std::string module, size_t input)
      : sums_(std::move(sums)), module_(std::move(module)), input_(input) {}

  variable_list operator()(const variable_list& gradients, const variable_list&) override {
    if (input_ < gradients.size() && gradients[input_].defined()) sums_->Add(module_, gradients[input_]);
    return gradients;
  }

 private:
  const std::shared_ptr<Sums> sums_;
  const std::string module_;
  const size_t input_;
};

}  // namespace

// The graph of one loss.
class ModuleGradients::Graph {
 public:
  Graph(const std::vector<NamedParameter>& parameters, const std::map<std::string, std::string>& modules) {
    for (const NamedParameter& parameter : parameters) {
      if (!parameter.value.requires_grad()) continue;
      accumulators_.push_back(torch::autograd::impl::grad_accumulator(parameter.value));
      const auto module = modules.find(parameter.name);
      leaves_[accumulators_.back().get()] = module == modules.end() ? "" : module->second;
    }
  }

  // Puts hooks at every operation that uses a parameter of a watched module.
  void Attach(Node* root, Kind kind, const std::shared_ptr<Sums>& sums) {
    std::vector<Node*> open = {root};
    std::set<Node*> seen = {root};
    while (!open.empty()) {
      Node* node = open.back();
      open.pop_back();
      for (const std::string& module : ModulesAt(*node)) AttachTo(*node, module, kind, sums);
      for (const Edge& edge : node->next_edges()) {
        if (edge.is_valid() && seen.insert(edge.function.get()).second) open.push_back(edge.function.get());
      }
    }
  }

 private:
  // The accumulator behind a parameter or what was made of it alone; null for anything else.
  Node* LeafBehind(const Edge& edge, int most = kMostTransformations) const {
    if (!edge.is_valid()) return nullptr;
    Node* node = edge.function.get();
    if (leaves_.count(node) > 0) return node;
    if (most == 0 || node->num_outputs() == 0) return nullptr;
    Node* leaf = nullptr;
    for (const Edge& next : node->next_edges()) {
      leaf = LeafBehind(next, most - 1);
      if (leaf == nullptr) return nullptr;
    }
    return leaf;
  }

  // Of an operation that has other inputs than parameters.
  std::set<std::string> ModulesAt(const Node& node) const {
    std::set<std::string> modules;
    bool has_input = false;
    for (const Edge& edge : node.next_edges()) {
      Node* leaf = LeafBehind(edge);
      has_input |= leaf == nullptr;
      if (leaf != nullptr && !leaves_.at(leaf).empty()) modules.insert(leaves_.at(leaf));
    }
    return has_input ? modules : std::set<std::string>();
  }

  void AttachTo(Node& node, const std::string& module, Kind kind, const std::shared_ptr<Sums>& sums) const {
    if (kind == Kind::kOutput) {
      node.add_pre_hook(std::make_unique<ReadOutput<Sums>>(sums, module));
      return;
    }
    for (size_t i = 0; i < node.next_edges().size(); ++i) {
      const Edge& edge = node.next_edge(i);
      if (!edge.is_valid() || LeafBehind(edge) != nullptr) continue;
      node.add_post_hook(std::make_unique<ReadInput<Sums>>(sums, module, i));
      return;
    }
  }

  std::vector<std::shared_ptr<Node>> accumulators_;  // kept, so that theirs are the graph's
  std::map<const Node*, std::string> leaves_;        // of all parameters; "" for a module that is not watched
};

ModuleGradients::ModuleGradients(Kind kind, std::vector<NamedParameter> parameters,
                                 const std::vector<std::string>& watched)
    : kind_(kind), parameters_(std::move(parameters)), sums_(std::make_shared<Sums>()) {
  for (const std::string& name : watched) modules_[name] = ModuleOf(name);
  for (const NamedParameter& parameter : parameters_) {
    const auto module = modules_.find(parameter.name);
    if (module == modules_.end() || !parameter.value.requires_grad()) continue;
    zeros_[module->second] = at::zeros({}, at::TensorOptions(at::kFloat).device(parameter.value.device()));
  }
}

ModuleGradients::~ModuleGradients() = default;

void ModuleGradients::Watch(const at::Tensor& loss, int64_t batches) {
  const std::shared_ptr<Node>& root = loss.grad_fn();
  if (root == nullptr) return;
  root->add_pre_hook(std::make_unique<ReadScale<Sums>>(sums_, batches));
  Graph(parameters_, modules_).Attach(root.get(), kind_, sums_);
}

std::map<std::string, at::Tensor> ModuleGradients::Take() {
  const at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> norms = zeros_;
  for (const auto& [module, square] : sums_->squares) norms[module] = at::sqrt(square).to(at::kFloat);
  sums_->squares.clear();
  return norms;
}

}  // namespace ssl
