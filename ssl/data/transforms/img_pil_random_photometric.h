// SPDX-License-Identifier: Apache-2.0
//
// ImgPilRandomPhotometric (VISSL; PIRL, https://arxiv.org/abs/1912.01991): with probability p (0.66) all of, in this
// order: posterize to 4 ... 8 bits, sharpness by a factor in [0.1, 1.9], solarize from a threshold in [0, 256],
// autocontrast.
#ifndef SSL_DATA_TRANSFORMS_IMG_PIL_RANDOM_PHOTOMETRIC_H_
#define SSL_DATA_TRANSFORMS_IMG_PIL_RANDOM_PHOTOMETRIC_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/transform.h"

namespace ssl {

class ImgPilRandomPhotometric : public ViewTransform {
 public:
  explicit ImgPilRandomPhotometric(double probability) : probability_(probability) {}

  absl::string_view name() const override { return "ImgPilRandomPhotometric"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;

 private:
  double probability_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilRandomPhotometric(const ConfigNode& entry,
                                                                       const BuildContext& context);
std::unique_ptr<Options> MakeImgPilRandomPhotometricOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_IMG_PIL_RANDOM_PHOTOMETRIC_H_
