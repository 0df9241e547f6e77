// SPDX-License-Identifier: Apache-2.0
//
// The OPTIMIZER section of a configuration: VISSL's keys and defaults; `eps` and `amsgrad`, which ClassyVision reads
// but VISSL does not list, have ClassyVision's defaults. Plain values, thread-compatible.
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
#include "ssl/optim/schedule_options.h"

namespace ssl {

// OPTIMIZER.head_optimizer_params.
struct HeadOptimizerOptions : public Options {
  bool use_different_lr = false;
  bool use_different_wd = false;
  double weight_decay = 1e-4;

  void VisitFields(FieldVisitor& visitor) override;
};

// OPTIMIZER.param_schedulers.
struct ParamSchedulersOptions : public Options {
  LearningRateOptions lr;
  LearningRateOptions lr_head;

  void VisitFields(FieldVisitor& visitor) override;
};

struct OptimizerOptions : public Options {
  std::string name = "sgd";
  double weight_decay = 1e-4;
  double momentum = 0.9;
  bool nesterov = false;
  std::vector<double> betas = {0.9, 0.999};
  double epsilon = 1e-8;
  bool amsgrad = false;
  int64_t num_epochs = 90;

  bool use_larc = false;
  bool use_zero = false;

  std::string param_group_constructor = "default";
  bool construct_single_param_group_only = false;
  bool regularize_bn = false;
  bool regularize_bias = true;
  std::vector<std::string> non_regularized_parameters;  // parts of names
  HeadOptimizerOptions head_optimizer_params;

  ParamSchedulersOptions param_schedulers;

  void VisitFields(FieldVisitor& visitor) override;
};

// Unimplemented, naming each key (file:line) of `params`, the OPTIMIZER node, that asks for what this package cannot
// do: a setting that is silently ignored would train another model than the one that was asked for.
absl::Status CheckSupported(const ConfigNode& params, const OptimizerOptions& options);

}  // namespace ssl

#endif  // SSL_OPTIM_OPTIMIZER_OPTIONS_H_
