// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/default_grouper.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/optim/name_patterns.h"
#include "ssl/optim/optimizer_options.h"
#include "ssl/optim/parameter_rules.h"

namespace ssl {
namespace {

class DefaultGrouper : public ParameterGrouper {
 public:
  DefaultGrouper(const DefaultGrouperOptions& options, NamePatterns unregularized)
      : options_(options), unregularized_(std::move(unregularized)) {}

  absl::StatusOr<std::vector<ParameterGroup>> Group(std::vector<NamedParameter> parameters) const override {
    const LayerKinds kinds(parameters);
    return FormGroups(std::move(parameters), [&](const NamedParameter& parameter) {
      const std::string& name = parameter.name;
      const bool regularized =
          options_.single_group ||
          (kinds.Regularized(name, {options_.regularize_bn, options_.regularize_bias}) && !unregularized_.Match(name));
      const bool own_settings = !options_.single_group && HeadDiffers() && absl::StrContains(name, "head");
      if (!own_settings) {
        return MakeGroup("", regularized, options_.weight_decay, options_.weight_decay_schedule);
      }
      ParameterGroup group =
          MakeGroup("head_", regularized, options_.head_weight_decay, options_.head_weight_decay_schedule);
      group.learning_rate_schedule = options_.head_learning_rate_schedule;
      return group;
    });
  }

 private:
  bool HeadDiffers() const {
    return options_.head_learning_rate_schedule != ParameterGroup().learning_rate_schedule ||
           options_.head_weight_decay != options_.weight_decay ||
           options_.head_weight_decay_schedule != options_.weight_decay_schedule;
  }

  const DefaultGrouperOptions options_;
  const NamePatterns unregularized_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ParameterGrouper>> MakeDefaultGrouper(const DefaultGrouperOptions& options) {
  SSL_ASSIGN_OR_RETURN(NamePatterns unregularized, NamePatterns::Make(options.non_regularized_parameters));
  return std::make_unique<DefaultGrouper>(options, std::move(unregularized));
}

absl::StatusOr<std::unique_ptr<ParameterGrouper>> MakeDefaultGrouperFromConfig(const ConfigNode& params,
                                                                               const BuildContext& context) {
  OptimizerOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.OPTIMIZER", UnknownKeys::kIgnore, &options));
  SSL_RETURN_IF_ERROR(CheckSupported(params, options));
  const HeadOptimizerOptions& head = options.head_optimizer_params;
  DefaultGrouperOptions grouper;
  grouper.weight_decay = options.weight_decay;
  grouper.weight_decay_schedule = options.param_schedulers.weight_decay.is_map() ? "weight_decay" : "";
  grouper.regularize_bn = options.regularize_bn;
  grouper.regularize_bias = options.regularize_bias;
  grouper.non_regularized_parameters = options.non_regularized_parameters;
  grouper.single_group = options.construct_single_param_group_only;
  grouper.head_learning_rate_schedule = head.use_different_lr ? "lr_head" : "lr";
  grouper.head_weight_decay = head.use_different_wd ? head.weight_decay : options.weight_decay;
  grouper.head_weight_decay_schedule = options.param_schedulers.weight_decay_head.is_map() ? "weight_decay_head" : "";
  absl::StatusOr<std::unique_ptr<ParameterGrouper>> made = MakeDefaultGrouper(grouper);
  if (made.ok()) return made;
  const ConfigNode* patterns = params.Find("non_regularized_parameters");
  const SourceLocation& location = patterns == nullptr ? params.location() : patterns->location();
  return Annotate(made.status(), absl::StrCat(location.ToString(), ": config.OPTIMIZER.non_regularized_parameters"));
}

}  // namespace ssl
