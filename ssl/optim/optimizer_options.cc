// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/optimizer_options.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ssl {

void HeadOptimizerOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("use_different_lr", &use_different_lr, Doc("lr_head for the head"));
  visitor.Field("use_different_wd", &use_different_wd, Doc("own weight decay for the head"));
  visitor.Field("weight_decay", &weight_decay, Doc("weight decay of the head").AtLeast(0));
}

void ParamSchedulersOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Section("lr", &lr, Doc("learning rate"));
  visitor.Section("lr_head", &lr_head, Doc("learning rate of the head, with head_optimizer_params.use_different_lr"));
}

void OptimizerOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("name", &name, Doc("optimizer: sgd, adamw"));
  visitor.Field("weight_decay", &weight_decay, Doc("weight decay of the regularized parameters").AtLeast(0));
  visitor.Field("momentum", &momentum, Doc("sgd: momentum").AtLeast(0));
  visitor.Field("nesterov", &nesterov, Doc("sgd: Nesterov momentum"));
  visitor.Field("betas", &betas, Doc("adamw: decay of the two moving averages").Between(0, 1));
  visitor.Field("eps", &epsilon, Doc("adamw: added to the denominator").AtLeast(0));
  visitor.Field("amsgrad", &amsgrad, Doc("adamw: never let the denominator fall"));
  visitor.Field("num_epochs", &num_epochs, Doc("length of training").AtLeast(1).Unit("epochs"));
  visitor.Field("use_larc", &use_larc, Doc("layer-wise adaptive rates; not available yet"));
  visitor.Field("use_zero", &use_zero, Doc("sharded optimizer state; not available yet"));
  visitor.Field("param_group_constructor", &param_group_constructor, Doc("rule that forms parameter groups"));
  visitor.Field("construct_single_param_group_only", &construct_single_param_group_only,
                Doc("one group: every parameter regularized"));
  visitor.Field("regularize_bn", &regularize_bn, Doc("weight decay for normalisation layers"));
  visitor.Field("regularize_bias", &regularize_bias, Doc("weight decay for biases"));
  visitor.Field("non_regularized_parameters", &non_regularized_parameters,
                Doc("no weight decay for names that contain one of these"));
  visitor.Section("head_optimizer_params", &head_optimizer_params, Doc("own settings of the head; not available yet"));
  visitor.Section("param_schedulers", &param_schedulers, Doc("schedules"));
}

absl::Status CheckSupported(const ConfigNode& params, const OptimizerOptions& options) {
  std::vector<std::string> problems;
  const auto refuse_if = [&](bool asked, absl::string_view key) {
    const ConfigNode* node = params.FindPath(key);
    if (!asked || node == nullptr) return;
    problems.push_back(absl::StrCat(node->location().ToString(), ": config.OPTIMIZER.", key, " is ", node->Describe(),
                                    ", which is not available yet; expected it to be off or absent"));
  };
  refuse_if(options.use_larc, "use_larc");
  refuse_if(options.use_zero, "use_zero");
  refuse_if(options.head_optimizer_params.use_different_lr, "head_optimizer_params.use_different_lr");
  refuse_if(options.head_optimizer_params.use_different_wd, "head_optimizer_params.use_different_wd");
  if (const ConfigNode* schedulers = params.Find("param_schedulers"); schedulers != nullptr) {
    for (const auto& [key, node] : schedulers->entries()) {
      refuse_if(key != "lr" && key != "lr_head", absl::StrCat("param_schedulers.", key));
    }
  }
  return problems.empty() ? absl::OkStatus() : absl::UnimplementedError(absl::StrJoin(problems, "\n"));
}

}  // namespace ssl
