// SPDX-License-Identifier: Apache-2.0
//
// ImgPilMultiCropRandomApply (VISSL; BYOL, https://arxiv.org/abs/2006.07733): applies a list of transforms to each view
// with a probability of its own.
//
//   - name: ImgPilMultiCropRandomApply
//     transforms: [{name: ImgPilRandomSolarize, p: 1.0}]
//     prob: [0.0, 0.2]     # one for each view
#ifndef SSL_DATA_TRANSFORMS_IMG_PIL_MULTI_CROP_RANDOM_APPLY_H_
#define SSL_DATA_TRANSFORMS_IMG_PIL_MULTI_CROP_RANDOM_APPLY_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/view_planner.h"

namespace ssl {

class ImgPilMultiCropRandomApply final : public Transform, public ViewPlanner {
 public:
  // transforms: each with as_view_transform. probabilities: one for each view.
  ImgPilMultiCropRandomApply(std::vector<std::unique_ptr<Transform>> transforms, std::vector<double> probabilities)
      : transforms_(std::move(transforms)), probabilities_(std::move(probabilities)) {}

  absl::string_view name() const override { return "ImgPilMultiCropRandomApply"; }
  absl::Status Apply(const TransformContext& context, Sample* sample) const override;
  FloatRule float_rule() const override;
  bool has_plans() const override;
  absl::Status Plan(const TransformContext& context, const Image& image, std::vector<ViewPlan>* plans) const override;
  void CountSteps(std::vector<int>* most_steps) const override;

 private:
  std::vector<std::unique_ptr<Transform>> transforms_;
  std::vector<double> probabilities_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilMultiCropRandomApply(const ConfigNode& entry,
                                                                          const BuildContext& context);
std::unique_ptr<Options> MakeImgPilMultiCropRandomApplyOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_IMG_PIL_MULTI_CROP_RANDOM_APPLY_H_
