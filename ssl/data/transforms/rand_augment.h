// SPDX-License-Identifier: Apache-2.0
//
// RandAugment (VISSL; https://arxiv.org/abs/1909.13719): num_layers (2) of 15 operations, drawn anew for each view,
// each carried out with probability 1/2 at one magnitude (10, of 10). Parameters: magnitude_std (0) spreads the
// magnitude, increasing_severity (false) takes the variants that all grow stronger with it, weight_choice (none; 0)
// draws operations by timm's weights and without repetition.
#ifndef SSL_DATA_TRANSFORMS_RAND_AUGMENT_H_
#define SSL_DATA_TRANSFORMS_RAND_AUGMENT_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/augment_operations.h"

namespace ssl {

class RandAugment : public ViewTransform {
 public:
  // weights: one for each step, with which it is drawn, at most once; empty: all alike, and any number of times.
  RandAugment(std::vector<AugmentStep> steps, int num_layers, std::vector<double> weights)
      : steps_(std::move(steps)), num_layers_(num_layers), weights_(std::move(weights)) {}

  absl::string_view name() const override { return "RandAugment"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;

 private:
  std::vector<AugmentStep> steps_;
  int num_layers_;
  std::vector<double> weights_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeRandAugment(const ConfigNode& entry, const BuildContext& context);
std::unique_ptr<Options> MakeRandAugmentOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_RAND_AUGMENT_H_
