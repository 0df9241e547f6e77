// SPDX-License-Identifier: Apache-2.0
//
// Norms of the gradients that go through modules in backward, without a change to any of them: what autograd hands to a
// module's operation (the gradient of its output) or has from it (that of its input), read by hooks on the nodes of the
// graph. A module is known by its parameters: "trunk.layer4.0.conv1" has "trunk.layer4.0.conv1.weight". What several
// modules do in one operation, such as a block that is recomputed, has one gradient, which each of them reports.
// PyTorch's register_full_backward_hook, for modules that have parameters of their own.
//
//   ModuleGradients gradients(ModuleGradients::Kind::kOutput, model.Parameters(), {"trunk.layer4.0.conv1.weight"});
//   gradients.Watch(loss, /*batches=*/1);
//   loss.backward();
//   for (const auto& [module, norm] : gradients.Take()) ...
#ifndef SSL_HOOKS_MODULE_GRADIENTS_H_
#define SSL_HOOKS_MODULE_GRADIENTS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ssl/core/model.h"

namespace ssl {

class ModuleGradients {
 public:
  enum class Kind { kOutput, kInput };

  // parameters: all of the model. watched: names of those whose modules are of interest.
  ModuleGradients(Kind kind, std::vector<NamedParameter> parameters, const std::vector<std::string>& watched);
  ~ModuleGradients();

  // From now on the backward pass through `loss`, one of `batches` that make an update, is measured. May throw
  // LibTorch exceptions.
  void Watch(const at::Tensor& loss, int64_t batches);

  // The 2-norm of each module's gradients since the last call, over all its calls and all batches, without the loss
  // scale. Scalars, float32, where the gradients are. Always of all modules with a parameter that wants a gradient, so
  // that ranks which went different ways have the same names: 0 for one that backward has not come to.
  std::map<std::string, at::Tensor> Take();

 private:
  struct Sums;
  class Graph;

  const Kind kind_;
  const std::vector<NamedParameter> parameters_;
  std::map<std::string, std::string> modules_;  // of watched parameters, by the parameter's name
  std::map<std::string, at::Tensor> zeros_;     // of each module that has a gradient, where its parameters are
  std::shared_ptr<Sums> sums_;                  // shared with the graph's hooks
};

}  // namespace ssl

#endif  // SSL_HOOKS_MODULE_GRADIENTS_H_
