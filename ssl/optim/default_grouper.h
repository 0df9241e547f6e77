// SPDX-License-Identifier: Apache-2.0
//
// VISSL's "default" rule: which parameter has weight decay, and which learning rate. Parameters with equal settings
// form one group ("regularized", "unregularized", and the same with "head_" when the head has settings of its own).
//
// Without weight decay are the weights of normalisation layers unless regularize_bn, biases unless regularize_bias
// (those of normalisation layers need both), and what non_regularized_parameters names. The head is every parameter
// with "head" in its name. Parameters that do not require gradients are left out. As in VISSL, a schedule of the weight
// decay (param_schedulers.weight_decay) is for everything but the head, whose schedule is weight_decay_head; without
// one, the head's weight decay is constant.
//
// VISSL makes up to six groups of the same settings, and gives head parameters that non_regularized_parameters names
// the learning rate of the trunk; here they keep the head's. Pinned by tests/golden (param_groups).
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
  std::string weight_decay_schedule = {};
  bool regularize_bn = false;
  bool regularize_bias = true;
  std::vector<std::string> non_regularized_parameters = {};  // see name_patterns.h
  bool single_group = false;                                 // everything regularized
  std::string head_learning_rate_schedule = "lr";
  double head_weight_decay = 1e-4;
  std::string head_weight_decay_schedule = {};
};

// InvalidArgument for an unreadable pattern.
absl::StatusOr<std::unique_ptr<ParameterGrouper>> MakeDefaultGrouper(const DefaultGrouperOptions& options);

// params: the OPTIMIZER node.
absl::StatusOr<std::unique_ptr<ParameterGrouper>> MakeDefaultGrouperFromConfig(const ConfigNode& params,
                                                                               const BuildContext& context);

}  // namespace ssl

#endif  // SSL_OPTIM_DEFAULT_GROUPER_H_
