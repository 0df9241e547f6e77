// SPDX-License-Identifier: Apache-2.0
//
// RandomResizedCrop (torchvision): every view is replaced by a random part of itself, scaled to a fixed size.
// Parameters: size (a number, or [height, width]), scale [0.08, 1.0], ratio [3/4, 4/3], interpolation (bilinear or
// bicubic).
#ifndef SSL_DATA_TRANSFORMS_RANDOM_RESIZED_CROP_H_
#define SSL_DATA_TRANSFORMS_RANDOM_RESIZED_CROP_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/random_crop_rule.h"
#include "ssl/data/transforms/view_planner.h"

namespace ssl {

// What DrawCrop reads of an image of this full size.
NeededPixels NeededForCrop(const TransformContext& context, int view, const RandomCropRule& rule, int height,
                           int width);

// Draws a box in `source` by `rule` and view `view`'s stream, and resizes it into `result`, another image.
void DrawCrop(const TransformContext& context, int view, const RandomCropRule& rule, const Image& source,
              Image* result);

class RandomResizedCrop final : public ViewTransform, public ViewPlanner {
 public:
  explicit RandomResizedCrop(const RandomCropRule& rule) : rule_(rule) {}

  absl::string_view name() const override { return "RandomResizedCrop"; }
  NeededPixels Needs(const TransformContext& context, int views, int height, int width) const override;
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;
  absl::Status Plan(const TransformContext& context, const Image& image, std::vector<ViewPlan>* plans) const override;

 private:
  RandomCropRule rule_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeRandomResizedCrop(const ConfigNode& entry, const BuildContext& context);
std::unique_ptr<Options> MakeRandomResizedCropOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_RANDOM_RESIZED_CROP_H_
