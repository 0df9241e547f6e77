// SPDX-License-Identifier: Apache-2.0
//
// ImgRotatePil (VISSL; RotNet, https://arxiv.org/abs/1803.07728): turns the image by one of num_angles (4) equally
// spaced angles, counter-clockwise, and makes the number of the angle its label. Corners that nothing lands on become
// black.
#ifndef SSL_DATA_TRANSFORMS_IMG_ROTATE_PIL_H_
#define SSL_DATA_TRANSFORMS_IMG_ROTATE_PIL_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/transform.h"

namespace ssl {

class ImgRotatePil : public Transform {
 public:
  explicit ImgRotatePil(int num_angles) : num_angles_(num_angles) {}

  absl::string_view name() const override { return "ImgRotatePil"; }
  int64_t num_label_classes() const override { return num_angles_; }
  absl::Status Apply(const TransformContext& context, Sample* sample) const override;

 private:
  int num_angles_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeImgRotatePil(const ConfigNode& entry, const BuildContext& context);
std::unique_ptr<Options> MakeImgRotatePilOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_IMG_ROTATE_PIL_H_
