// SPDX-License-Identifier: Apache-2.0
//
// VisslAutoAugment (VISSL; AutoAugment, https://arxiv.org/abs/1805.09501): one of the 25 pairs of operations that were
// found for ImageNet, drawn anew for each view. Parameters: policy_name: original (the paper's), v0 (EfficientNet's),
// originalr and v0r (the same with a posterize that grows stronger with its magnitude); magnitude_std (0).
#ifndef SSL_DATA_TRANSFORMS_VISSL_AUTO_AUGMENT_H_
#define SSL_DATA_TRANSFORMS_VISSL_AUTO_AUGMENT_H_

#include <array>
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

using AugmentPair = std::array<AugmentStep, 2>;

class VisslAutoAugment : public ViewTransform {
 public:
  explicit VisslAutoAugment(std::vector<AugmentPair> policy) : policy_(std::move(policy)) {}

  absl::string_view name() const override { return "VisslAutoAugment"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;

 private:
  std::vector<AugmentPair> policy_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeVisslAutoAugment(const ConfigNode& entry, const BuildContext& context);
std::unique_ptr<Options> MakeVisslAutoAugmentOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_VISSL_AUTO_AUGMENT_H_
