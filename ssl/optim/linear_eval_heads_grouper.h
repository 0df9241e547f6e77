// SPDX-License-Identifier: Apache-2.0
//
// Many linear classifiers on one frozen trunk, each with settings of its own (VISSL's "linear_eval_heads"): head i, the
// parameters "heads.<i>.", follows entry i of OPTIMIZER.linear_eval_heads: {lr: factor of the learning rate, which must
// be there, weight_decay, regularize_bn; else OPTIMIZER's}. Biases follow OPTIMIZER.regularize_bias. Groups are named
// "head<i>_regularized" and "head<i>_unregularized".
//
// As in VISSL only heads are trained: other parameters are in no group. The weight decay has no schedule.
#ifndef SSL_OPTIM_LINEAR_EVAL_HEADS_GROUPER_H_
#define SSL_OPTIM_LINEAR_EVAL_HEADS_GROUPER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/parameter_grouper.h"
#include "ssl/core/registries.h"

namespace ssl {

// params: the OPTIMIZER node. Group is InvalidArgument for a head without an entry.
absl::StatusOr<std::unique_ptr<ParameterGrouper>> MakeLinearEvalHeadsGrouperFromConfig(const ConfigNode& params,
                                                                                       const BuildContext& context);

}  // namespace ssl

#endif  // SSL_OPTIM_LINEAR_EVAL_HEADS_GROUPER_H_
