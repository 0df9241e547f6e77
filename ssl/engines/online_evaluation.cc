// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/online_evaluation.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ssl/base/log.h"
#include "ssl/core/hook.h"
#include "ssl/engines/evaluation_plan.h"

namespace ssl {
namespace {

bool NeedsPlan(const ConfigNode& config) {
  const ConfigNode* evaluates = config.FindPath("HOOKS.EVAL.ONLINE_EVALUATION");
  const ConfigNode* sources = config.FindPath("DATA.TEST.DATA_SOURCES");
  return evaluates != nullptr && evaluates->AsBool().value_or(false) &&
         (sources == nullptr || sources->items().empty());
}

}  // namespace

void PlanOnlineEvaluations(Registries* registries) {
  if (registries->configured_hooks == nullptr) return;
  registries->configured_hooks =
      [make = std::move(registries->configured_hooks)](
          const BuildContext& context) -> absl::StatusOr<std::vector<std::unique_ptr<Hook>>> {
    if (!NeedsPlan(context.config)) return make(context);
    const EvaluationPlan plan =
        PlanEvaluation(context.config, context.registries.options.Defaults(), context.file_system);
    if (context.communicator.rank() == 0) {
      for (const std::string& choice : plan.choices) SSL_LOG(INFO) << "evaluation during training: " << choice;
    }
    return make({plan.config, context.registries, context.communicator, context.seed, context.run_directory,
                 context.first_iteration, context.file_system, context.stop, context.method, context.hook_names,
                 context.key_paths});
  };
}

}  // namespace ssl
