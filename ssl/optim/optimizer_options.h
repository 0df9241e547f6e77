// SPDX-License-Identifier: Apache-2.0
//
// The OPTIMIZER section of a configuration: VISSL's keys and defaults; `eps`, `amsgrad`, `eta`,
// `exclude_bias_and_norm`, `alpha` and `centered`, which single optimizers of VISSL and ClassyVision read but VISSL
// does not list, have their defaults there. `grad_acc_steps` is ours. Plain values, thread-compatible.
//
//   OptimizerOptions options;
//   SSL_RETURN_IF_ERROR(ReadOptions(params, "config.OPTIMIZER", UnknownKeys::kIgnore, &options));
//   SSL_RETURN_IF_ERROR(CheckSupported(params, options));
#ifndef SSL_OPTIM_OPTIMIZER_OPTIONS_H_
#define SSL_OPTIM_OPTIMIZER_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/shared_options.h"
#include "ssl/optim/schedule_options.h"

namespace ssl {

// OPTIMIZER.larc_config; see larc.h.
struct LarcConfigOptions : public Options {
  bool clip = false;
  double epsilon = 1e-8;
  double trust_coefficient = 0.001;

  void VisitFields(FieldVisitor& visitor) override;
};

// OPTIMIZER.head_optimizer_params.
struct HeadOptimizerOptions : public Options {
  bool use_different_lr = false;
  bool use_different_wd = false;
  double weight_decay = 1e-4;

  void VisitFields(FieldVisitor& visitor) override;
};

// OPTIMIZER.layer_wise_lr_decay.
struct LayerWiseLrDecayOptions : public Options {
  double decay = 0.9;

  void VisitFields(FieldVisitor& visitor) override;
};

// An entry of OPTIMIZER.linear_eval_heads: the settings of one head.
struct LinearEvalHeadOptions : public Options {
  double learning_rate_scale = 1.0;
  double weight_decay = 0.0;
  bool regularize_bn = false;

  void VisitFields(FieldVisitor& visitor) override;
};

// OPTIMIZER.param_schedulers. A schedule of weight decay or momentum has the keys of ScheduleOptions; null: the value
// stays.
struct ParamSchedulersOptions : public Options {
  LearningRateOptions lr;
  LearningRateOptions lr_head;
  ConfigNode weight_decay;
  ConfigNode weight_decay_head;
  ConfigNode momentum;

  void VisitFields(FieldVisitor& visitor) override;
};

struct OptimizerOptions : public UpdateOptions {
  double weight_decay = 1e-4;
  double momentum = 0.9;
  bool nesterov = false;
  std::vector<double> betas = {0.9, 0.999};
  double epsilon = 1e-8;
  bool amsgrad = false;
  double eta = 0.001;
  bool exclude_bias_and_norm = false;
  double alpha = 0.99;
  bool centered = false;

  bool use_larc = false;
  LarcConfigOptions larc_config;
  ConfigNode base_optimizer;  // of VISSL's zero; null in a resolved configuration

  bool construct_single_param_group_only = false;
  bool regularize_bn = false;
  bool regularize_bias = true;
  std::vector<std::string> non_regularized_parameters;  // parts of names, or RE2 patterns
  HeadOptimizerOptions head_optimizer_params;
  LayerWiseLrDecayOptions layer_wise_lr_decay;
  ConfigNode linear_eval_heads = ConfigNode::List();

  ParamSchedulersOptions param_schedulers;

  void VisitFields(FieldVisitor& visitor) override;
};

// Unimplemented, naming the key (file:line) of `params`, the OPTIMIZER node, that asks for what this package cannot do;
// InvalidArgument for use_larc with another optimizer than sgd, and for a schedule that is none. A setting that is
// silently ignored would train another model than the one that was asked for.
absl::Status CheckSupported(const ConfigNode& params, const OptimizerOptions& options);

}  // namespace ssl

#endif  // SSL_OPTIM_OPTIMIZER_OPTIONS_H_
