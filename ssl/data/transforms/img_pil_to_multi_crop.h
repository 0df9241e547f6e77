// SPDX-License-Identifier: Apache-2.0
//
// ImgPilToMultiCrop (VISSL; SwAV, https://arxiv.org/abs/2006.09882, section 3.3): one image becomes
// total_num_crops views, num_crops[i] random crops of size_crops[i] each, in that order.
//
//   - name: ImgPilToMultiCrop
//     total_num_crops: 6
//     num_crops: [2, 4]
//     size_crops: [28, 16]
//     crop_scales: [[0.5, 1.0], [0.2, 0.5]]
//     crop_ratios: [[0.75, 1.3333], [0.75, 1.3333]]   # ours, optional: width / height
#ifndef SSL_DATA_TRANSFORMS_IMG_PIL_TO_MULTI_CROP_H_
#define SSL_DATA_TRANSFORMS_IMG_PIL_TO_MULTI_CROP_H_

#include <memory>
#include <utility>
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

class ImgPilToMultiCrop final : public Transform, public ViewPlanner {
 public:
  // crops: one rule per view.
  explicit ImgPilToMultiCrop(std::vector<RandomCropRule> crops) : crops_(std::move(crops)) {}

  absl::string_view name() const override { return "ImgPilToMultiCrop"; }
  NeededPixels Needs(const TransformContext& context, int views, int height, int width) const override;
  absl::Status Apply(const TransformContext& context, Sample* sample) const override;
  absl::Status Plan(const TransformContext& context, const Image& image, std::vector<ViewPlan>* plans) const override;

 private:
  std::vector<RandomCropRule> crops_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilToMultiCrop(const ConfigNode& entry, const BuildContext& context);
std::unique_ptr<Options> MakeImgPilToMultiCropOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_IMG_PIL_TO_MULTI_CROP_H_
