// SPDX-License-Identifier: Apache-2.0
//
// engine_name=linear_eval: how well a linear classifier on fixed features of the run's newest checkpoint does on
// DATA.TEST, beside the baselines "raw_pixels" and "untrained". The learning rate is chosen on a tenth of DATA.TRAIN
// that is held out; the classifier that is tested is then trained on all of it. What the configuration leaves open
// follows from the training run: evaluation_plan.h. A stopped evaluation has no results. VISSL trains such heads by its
// training engine; on precomputed features the same takes seconds.
// Results: {"linear_eval": {"trained": top-1, "trained_top5": top-5, "trained_learning_rate": rate, ...}}, fractions;
// likewise for each baseline; and "broken_images" (broken_images_results.h).
#ifndef SSL_ENGINES_LINEAR_EVAL_ENGINE_H_
#define SSL_ENGINES_LINEAR_EVAL_ENGINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/evaluation_subjects.h"

namespace ssl {

// The section LINEAR_EVAL; all keys are ours.
struct LinearEvalOptions : Options {
  std::vector<std::string> layers = {"res5avg"};
  std::vector<std::string> baselines = {kAutoBaselines};
  FeatureFilesSection features;
  std::vector<double> learning_rates = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0};
  int64_t num_epochs = 20;
  int64_t batch_size = 256;
  double momentum = 0.9;
  double weight_decay = 0.0;
  bool normalize = true;
  void VisitFields(FieldVisitor& visitor) override;
};

absl::StatusOr<std::unique_ptr<Engine>> MakeLinearEvalEngine(const ConfigNode& config, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_ENGINES_LINEAR_EVAL_ENGINE_H_
