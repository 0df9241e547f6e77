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

#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

using torch::autograd::Edge;
using torch::autograd::Node;
using torch::autograd::variable_list;

// Operations on a parameter alone that stand between it and the one that uses it: transposes and casts, and what makes
// a dense matrix of a convolution's weight (ssl/models/layers.cc).
constexpr int kMostTransformations = 16;

// What a rank knows of a module; over the ranks, the highest holds. A gradient of one pass is no measure of a module
// that is one operation with others in the next.
constexpr int64_t kNotSeen = 0;
constexpr int64_t kWithout = 1;
constexpr int64_t kMeasured = 2;
constexpr int64_t kShared = 3;

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
  std::set<std::string> measured;  // modules that have such a gradient in a graph
  std::set<std::string> without;   // those that are in a graph and have none there
  std::set<std::string> shared;    // those that are one operation with others in some pass

  int64_t Known(const std::string& module) const {
    if (shared.count(module) > 0) return kShared;
    if (measured.count(module) > 0) return kMeasured;
    return without.count(module) > 0 ? kWithout : kNotSeen;
  }
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
  // watched: names of modules.
  Graph(const std::vector<NamedParameter>& parameters, const std::map<std::string, at::Tensor>& watched)
      : watched_(watched) {
    for (const NamedParameter& parameter : parameters) {
      if (!parameter.value.requires_grad()) continue;
      accumulators_.push_back(torch::autograd::impl::grad_accumulator(parameter.value));
      leaves_[accumulators_.back().get()] = ModuleOf(parameter.name);
    }
  }

  // Puts hooks at every operation that uses a parameter of a watched module.
  void Attach(Node* root, Kind kind, const std::shared_ptr<Sums>& sums) {
    std::vector<Node*> open = {root};
    std::set<Node*> seen = {root};
    while (!open.empty()) {
      Node* node = open.back();
      open.pop_back();
      AttachTo(*node, kind, sums);
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

  // Those whose parameters go into the operation.
  std::set<std::string> ModulesAt(const Node& node) const {
    std::set<std::string> modules;
    bool has_input = false;
    for (const Edge& edge : node.next_edges()) {
      Node* leaf = LeafBehind(edge);
      has_input |= leaf == nullptr;
      if (leaf != nullptr) modules.insert(leaves_.at(leaf));
    }
    return has_input ? modules : std::set<std::string>();  // else it makes something of parameters alone
  }

  void AttachTo(Node& node, Kind kind, const std::shared_ptr<Sums>& sums) const {
    const std::set<std::string> modules = ModulesAt(node);
    for (const std::string& module : modules) {
      if (watched_.count(module) == 0) continue;
      if (modules.size() > 1) {
        sums->shared.insert(module);
      } else {
        (AttachToOne(node, module, kind, sums) ? sums->measured : sums->without).insert(module);
      }
    }
  }

  // False when it has no such gradient: an input that wants none.
  bool AttachToOne(Node& node, const std::string& module, Kind kind, const std::shared_ptr<Sums>& sums) const {
    if (kind == Kind::kOutput) {
      node.add_pre_hook(std::make_unique<ReadOutput<Sums>>(sums, module));
      return true;
    }
    for (size_t i = 0; i < node.next_edges().size(); ++i) {
      const Edge& edge = node.next_edge(i);
      if (!edge.is_valid() || LeafBehind(edge) != nullptr) continue;
      node.add_post_hook(std::make_unique<ReadInput<Sums>>(sums, module, i));
      return true;
    }
    return false;
  }

  const std::map<std::string, at::Tensor>& watched_;
  std::vector<std::shared_ptr<Node>> accumulators_;  // kept, so that theirs are the graph's
  std::map<const Node*, std::string> leaves_;        // the modules of all parameters
};

ModuleGradients::ModuleGradients(Kind kind, std::vector<NamedParameter> parameters,
                                 const std::vector<std::string>& watched)
    : kind_(kind), parameters_(std::move(parameters)), sums_(std::make_shared<Sums>()) {
  const std::set<std::string> names(watched.begin(), watched.end());
  for (const NamedParameter& parameter : parameters_) {
    if (names.count(parameter.name) == 0 || !parameter.value.requires_grad()) continue;
    zeros_[ModuleOf(parameter.name)] = at::zeros({}, at::TensorOptions(at::kFloat).device(parameter.value.device()));
  }
}

ModuleGradients::~ModuleGradients() = default;

void ModuleGradients::Watch(const at::Tensor& loss, int64_t batches) {
  const std::shared_ptr<Node>& root = loss.grad_fn();
  if (root == nullptr) return;
  root->add_pre_hook(std::make_unique<ReadScale<Sums>>(sums_, batches));
  Graph(parameters_, zeros_).Attach(root.get(), kind_, sums_);
}

const std::set<std::string>& ModuleGradients::shared() const { return sums_->shared; }

absl::StatusOr<std::map<std::string, at::Tensor>> ModuleGradients::Take(Communicator& communicator) {
  const at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> norms = zeros_;
  if (norms.empty()) return norms;
  for (const auto& [module, square] : sums_->squares) norms[module] = at::sqrt(square).to(at::kFloat);
  at::Tensor known = at::zeros({static_cast<int64_t>(zeros_.size())}, at::kLong);
  int64_t* next = known.mutable_data_ptr<int64_t>();
  for (const auto& [module, _] : zeros_) *next++ = sums_->Known(module);
  sums_->squares.clear();
  sums_->measured.clear();
  sums_->without.clear();
  sums_->shared.clear();
  SSL_RETURN_IF_ERROR(communicator.AllReduce(known, ReduceOp::kMax));
  const int64_t* of_all = known.const_data_ptr<int64_t>();
  for (const auto& [module, _] : zeros_) {
    const int64_t highest = *of_all++;
    if (highest == kWithout || highest == kShared) norms.erase(module);
  }
  return norms;
}

}  // namespace ssl
