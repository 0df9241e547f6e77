// SPDX-License-Identifier: Apache-2.0
//
// ImgReplicatePil (VISSL): every view is followed by copies of itself, num_times (2) equal views in all.
#ifndef SSL_DATA_TRANSFORMS_IMG_REPLICATE_PIL_H_
#define SSL_DATA_TRANSFORMS_IMG_REPLICATE_PIL_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/view_planner.h"

namespace ssl {

class ImgReplicatePil final : public Transform, public ViewPlanner {
 public:
  explicit ImgReplicatePil(int num_times) : num_times_(num_times) {}

  absl::string_view name() const override { return "ImgReplicatePil"; }
  int CopiesOf(int views) const override;
  absl::Status Apply(const TransformContext& context, Sample* sample) const override;
  absl::Status Plan(const TransformContext& context, const Image& image, std::vector<ViewPlan>* plans) const override;

 private:
  int num_times_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeImgReplicatePil(const ConfigNode& entry, const BuildContext& context);
std::unique_ptr<Options> MakeImgReplicatePilOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_IMG_REPLICATE_PIL_H_
