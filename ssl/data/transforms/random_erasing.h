// SPDX-License-Identifier: Apache-2.0
//
// RandomErasing (torchvision; https://arxiv.org/abs/1708.04896): with probability p (0.5), a box of every view has
// other floats: `value` (0; one number, or one for each channel), or noise of mean 0 and variance 1 (random). scale
// [0.02, 0.33] is the box's part of the area, ratio [0.3, 3.3] its height / width. It stands after ToTensor and
// Normalize.
#ifndef SSL_DATA_TRANSFORMS_RANDOM_ERASING_H_
#define SSL_DATA_TRANSFORMS_RANDOM_ERASING_H_

#include <array>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/image/crop_box.h"
#include "ssl/data/transform.h"

namespace ssl {

struct ErasingRule {
  double probability = 0.5;
  Interval scale = {0.02, 0.33};
  Interval ratio = {0.3, 3.3};
  bool noise = false;
  std::array<float, 3> value = {0.0f, 0.0f, 0.0f};
};

class RandomErasing : public ViewTransform {
 public:
  explicit RandomErasing(const ErasingRule& rule) : rule_(rule) {}

  absl::string_view name() const override { return "RandomErasing"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;
  FloatRule float_rule() const override { return FloatRule::kByChance; }

 private:
  ErasingRule rule_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeRandomErasing(const ConfigNode& entry, const BuildContext& context);
std::unique_ptr<Options> MakeRandomErasingOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_RANDOM_ERASING_H_
