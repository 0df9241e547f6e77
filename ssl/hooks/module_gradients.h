// SPDX-License-Identifier: Apache-2.0
//
// Norms of the gradients that go through modules in backward, without a change to any of them: what autograd hands to a
// module's operation (the gradient of its output) or has from it (that of its input), read by hooks on the nodes of the
// graph. A module is known by its parameters: "trunk.layer4.0.conv1" has "trunk.layer4.0.conv1.weight". What several
// modules do in one operation, such as a block that is recomputed, is no gradient of any of them. PyTorch's
// register_full_backward_hook, for modules that have parameters of their own.
//
//   ModuleGradients gradients(ModuleGradients::Kind::kOutput, model.Parameters(), {"trunk.layer4.0.conv1.weight"});
//   gradients.Watch(loss, /*batches=*/1);
//   loss.backward();
//   SSL_ASSIGN_OR_RETURN(const auto norms, gradients.Take(communicator));
//   for (const auto& [module, norm] : norms) ...
#ifndef SSL_HOOKS_MODULE_GRADIENTS_H_
#define SSL_HOOKS_MODULE_GRADIENTS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/core/model.h"
#include "ssl/distributed/communicator.h"

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
  // scale. Scalars, float32, where the gradients are. The names are those of all ranks, also where these went different
  // ways: all modules with a parameter that wants a gradient, 0 for one that backward has not come to, but for those
  // that have no such gradient on any rank, because their input wants none (images, what a frozen trunk gives) or they
  // are one operation with others. Collective.
  absl::StatusOr<std::map<std::string, at::Tensor>> Take(Communicator& communicator);

  // Modules that were one operation with others, in what was watched since the last Take.
  const std::set<std::string>& shared() const;

 private:
  struct Sums;
  class Graph;

  const Kind kind_;
  const std::vector<NamedParameter> parameters_;
  std::map<std::string, at::Tensor> zeros_;  // of each watched module that trains, where its parameters are
  std::shared_ptr<Sums> sums_;               // shared with the graph's hooks
};

}  // namespace ssl

#endif  // SSL_HOOKS_MODULE_GRADIENTS_H_
