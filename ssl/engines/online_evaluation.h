// SPDX-License-Identifier: Apache-2.0
//
// Evaluations during training (the hook eval) see the images that evaluations after it see.
#ifndef SSL_ENGINES_ONLINE_EVALUATION_H_
#define SSL_ENGINES_ONLINE_EVALUATION_H_

#include "ssl/core/registries.h"

namespace ssl {

// Where HOOKS.EVAL.ONLINE_EVALUATION is on and the configuration names no test set, hooks are made with the plan of an
// evaluation (evaluation_plan.h), such as the images that it holds out; the training itself goes on with all of its
// own. For registries that have their hooks.
void PlanOnlineEvaluations(Registries* registries);

}  // namespace ssl

#endif  // SSL_ENGINES_ONLINE_EVALUATION_H_
