// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/optimizer_options.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace ssl {

void LarcConfigOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("clip", &clip, Doc("the rate of a parameter is at most the learning rate"));
  visitor.Field("eps", &epsilon, Doc("added to the denominator").AtLeast(0));
  visitor.Field("trust_coefficient", &trust_coefficient, Doc("size of an update, in parameter norms").Above(0));
}

void HeadOptimizerOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("use_different_lr", &use_different_lr, Doc("lr_head for the head"));
  visitor.Field("use_different_wd", &use_different_wd, Doc("own weight decay for the head"));
  visitor.Field("weight_decay", &weight_decay, Doc("weight decay of the head").AtLeast(0));
}

void LayerWiseLrDecayOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("decay", &decay, Doc("factor of the learning rate from layer to layer, towards the input").Above(0));
}

void LinearEvalHeadOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("lr", &learning_rate_scale, Doc("factor of the learning rate").AtLeast(0));
  visitor.Field("weight_decay", &weight_decay, Doc("weight decay").AtLeast(0));
  visitor.Field("regularize_bn", &regularize_bn, Doc("weight decay for normalisation layers"));
}

void ParamSchedulersOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Section("lr", &lr, Doc("learning rate"));
  visitor.Section("lr_head", &lr_head, Doc("learning rate of the head, with head_optimizer_params.use_different_lr"));
  visitor.Field("weight_decay", &weight_decay, Doc("schedule of the weight decay, in place of weight_decay"));
  visitor.Field("weight_decay_head", &weight_decay_head, Doc("schedule of the head's weight decay"));
  visitor.Field("momentum", &momentum, Doc("sgd, lars, rmsprop: schedule of the momentum, in place of momentum"));
}

void OptimizerOptions::VisitFields(FieldVisitor& visitor) {
  UpdateOptions::VisitFields(visitor);
  visitor.Field("weight_decay", &weight_decay, Doc("weight decay of the regularized parameters").AtLeast(0));
  visitor.Field("momentum", &momentum, Doc("sgd, lars, rmsprop: momentum").Between(0, 1));
  visitor.Field("nesterov", &nesterov, Doc("sgd: Nesterov momentum"));
  visitor.Field("betas", &betas, Doc("adam, adamw: decay of the two moving averages").Between(0, 1));
  visitor.Field("eps", &epsilon, Doc("adam, adamw, rmsprop: added to the denominator").AtLeast(0));
  visitor.Field("amsgrad", &amsgrad, Doc("adam, adamw: never let the denominator fall"));
  visitor.Field("eta", &eta, Doc("lars: size of an update, in parameter norms").Above(0));
  visitor.Field("exclude_bias_and_norm", &exclude_bias_and_norm,
                Doc("lars: no adaptation for parameters of one dimension"));
  visitor.Field("alpha", &alpha, Doc("rmsprop: decay of the moving average").Between(0, 1));
  visitor.Field("centered", &centered, Doc("rmsprop: divide by the standard deviation of the gradient"));
  visitor.Field("use_larc", &use_larc, Doc("sgd: layer-wise adaptive rates"));
  visitor.Section("larc_config", &larc_config, Doc("settings of use_larc"));
  visitor.Field("base_optimizer", &base_optimizer,
                Doc("zero: name and settings of the optimizer whose state is shared, as with use_zero"));
  visitor.Field("construct_single_param_group_only", &construct_single_param_group_only,
                Doc("one group: every parameter regularized"));
  visitor.Field("regularize_bn", &regularize_bn, Doc("weight decay for normalisation layers"));
  visitor.Field("regularize_bias", &regularize_bias, Doc("weight decay for biases"));
  visitor.Field("non_regularized_parameters", &non_regularized_parameters,
                Doc("no weight decay for names that contain one of these, or that match as RE2 pattern"));
  visitor.Section("head_optimizer_params", &head_optimizer_params, Doc("own settings of the head"));
  visitor.Section("layer_wise_lr_decay", &layer_wise_lr_decay, Doc("settings of param_group_constructor lr_decay"));
  visitor.Field(
      "linear_eval_heads", &linear_eval_heads,
      Doc("param_group_constructor linear_eval_heads: lr (factor), weight_decay, regularize_bn of each head"));
  visitor.Section("param_schedulers", &param_schedulers, Doc("schedules"));
}

absl::Status CheckSupported(const ConfigNode& params, const OptimizerOptions& options) {
  const auto place_of = [&](absl::string_view key) {
    const ConfigNode* node = params.FindPath(key);
    const SourceLocation& location = node == nullptr ? params.location() : node->location();
    return absl::StrCat(location.ToString(), ": config.OPTIMIZER.", key);
  };
  if (options.use_larc && absl::StripSuffix(options.name, "_fsdp") != "sgd") {
    return absl::InvalidArgumentError(absl::StrCat(place_of("use_larc"), " is true and config.OPTIMIZER.name is '",
                                                   options.name, "', expected 'sgd'"));
  }
  for (const char* name : {"weight_decay", "weight_decay_head", "momentum"}) {
    const std::string key = absl::StrCat("param_schedulers.", name);
    const ConfigNode* schedule = params.FindPath(key);
    if (schedule == nullptr || schedule->is_null() || schedule->is_map()) continue;
    return absl::InvalidArgumentError(absl::StrCat(place_of(key), " is ", schedule->Describe(),
                                                   ", expected a schedule such as {name: constant, value: 0.1}"));
  }
  return absl::OkStatus();
}

}  // namespace ssl
