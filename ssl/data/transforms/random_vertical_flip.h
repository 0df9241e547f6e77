// SPDX-License-Identifier: Apache-2.0
//
// RandomVerticalFlip (torchvision): turns each view upside down with probability p (0.5).
#ifndef SSL_DATA_TRANSFORMS_RANDOM_VERTICAL_FLIP_H_
#define SSL_DATA_TRANSFORMS_RANDOM_VERTICAL_FLIP_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/transform.h"

namespace ssl {

class RandomVerticalFlip : public ViewTransform {
 public:
  explicit RandomVerticalFlip(double probability) : probability_(probability) {}

  absl::string_view name() const override { return "RandomVerticalFlip"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;

 private:
  double probability_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeRandomVerticalFlip(const ConfigNode& entry, const BuildContext& context);
std::unique_ptr<Options> MakeRandomVerticalFlipOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_RANDOM_VERTICAL_FLIP_H_
