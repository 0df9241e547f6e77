// SPDX-License-Identifier: Apache-2.0
//
// ImgPil2LabTensor (VISSL; Colorization, https://arxiv.org/abs/1603.08511): pixels become floats of L*a*b*, L - 50 in
// [-50, 50], a and b in [-128, 127], from OpenCV's 8-bit values. It stands where ToTensor would.
#ifndef SSL_DATA_TRANSFORMS_IMG_PIL_2_LAB_TENSOR_H_
#define SSL_DATA_TRANSFORMS_IMG_PIL_2_LAB_TENSOR_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/image/pixel_table.h"
#include "ssl/data/transform.h"

namespace ssl {

class ImgPil2LabTensor : public ViewTransform {
 public:
  ImgPil2LabTensor() : table_(MakeLabTable()) {}

  absl::string_view name() const override { return "ImgPil2LabTensor"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;
  FloatRule float_rule() const override { return FloatRule::kTable; }

 private:
  PixelTable table_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPil2LabTensor(const ConfigNode& entry, const BuildContext& context);
std::unique_ptr<Options> MakeImgPil2LabTensorOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_IMG_PIL_2_LAB_TENSOR_H_
