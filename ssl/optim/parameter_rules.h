// SPDX-License-Identifier: Apache-2.0
//
// What the parameter groupings share: parameters with equal settings form one group, because every group is an
// operation of its own in each step. Pure functions.
#ifndef SSL_OPTIM_PARAMETER_RULES_H_
#define SSL_OPTIM_PARAMETER_RULES_H_

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "ssl/core/optimizer.h"
#include "ssl/core/parameter_grouper.h"

namespace ssl {

// The settings of a parameter: a group without parameters. Equal names mean equal settings.
using GroupRule = std::function<ParameterGroup(const NamedParameter&)>;

// Groups in the order of their first parameter. Parameters that do not require gradients are left out.
std::vector<ParameterGroup> FormGroups(std::vector<NamedParameter> parameters, const GroupRule& rule);

// What of a model has weight decay, by the kind of its layers.
struct RegularizedLayers {
  bool norm = false;
  bool bias = true;
};

class LayerKinds {
 public:
  explicit LayerKinds(const std::vector<NamedParameter>& parameters);

  // Weights of normalisation layers need `norm`, biases `bias`, and biases of normalisation layers both.
  bool Regularized(const std::string& name, const RegularizedLayers& layers) const;

 private:
  std::set<std::string> norm_layers_;
};

// "a.bias"
bool IsBias(const std::string& name);

// A group named `prefix` + "regularized", or "unregularized" without weight decay. `schedule`: of the weight decay.
ParameterGroup MakeGroup(const std::string& prefix, bool regularized, double weight_decay, const std::string& schedule);

}  // namespace ssl

#endif  // SSL_OPTIM_PARAMETER_RULES_H_
