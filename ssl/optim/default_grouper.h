// SPDX-License-Identifier: Apache-2.0
//
// VISSL's "default" rule for weight decay, as two groups: "regularized" gets OPTIMIZER.weight_decay, "unregularized"
// none.
//
// Unregularized are the weights of normalisation layers unless regularize_bn, biases unless regularize_bias (those of
// normalisation layers need both), and every name that contains an entry of non_regularized_parameters. Parameters
// that do not require gradients are left out. VISSL makes up to six groups (trunk, head, others) with the same two
// weight decays; the groups here hold the same parameters. Pinned by tests/golden (param_groups).
#ifndef SSL_OPTIM_DEFAULT_GROUPER_H_
#define SSL_OPTIM_DEFAULT_GROUPER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/parameter_grouper.h"
#include "ssl/core/registries.h"

namespace ssl {

struct DefaultGrouperOptions {
  double weight_decay = 1e-4;
  bool regularize_bn = false;
  bool regularize_bias = true;
  std::vector<std::string> non_regularized_parameters;  // parts of names
  bool single_group = false;                            // everything regularized
};

std::unique_ptr<ParameterGrouper> MakeDefaultGrouper(const DefaultGrouperOptions& options);

// params: the OPTIMIZER node.
absl::StatusOr<std::unique_ptr<ParameterGrouper>> MakeDefaultGrouperFromConfig(const ConfigNode& params,
                                                                               const BuildContext& context);

}  // namespace ssl

#endif  // SSL_OPTIM_DEFAULT_GROUPER_H_
