// SPDX-License-Identifier: Apache-2.0
//
// MNISTImgPil2RGB (VISSL): puts the image on a black one of `size`, a number or [width, height], with its upper left
// corner at `box` [x, y] ([0, 0]); without size, keeps it. What it makes is grey still: the batch has as many channels
// as IMAGE_CHANNELS says.
#ifndef SSL_DATA_TRANSFORMS_MNIST_IMG_PIL_2_RGB_H_
#define SSL_DATA_TRANSFORMS_MNIST_IMG_PIL_2_RGB_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/image/crop_box.h"
#include "ssl/data/transform.h"

namespace ssl {

class MnistImgPil2Rgb : public ViewTransform {
 public:
  // canvas: the result, in coordinates of the image; empty: as the image.
  explicit MnistImgPil2Rgb(const CropBox& canvas) : canvas_(canvas) {}

  absl::string_view name() const override { return "MNISTImgPil2RGB"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;

 private:
  CropBox canvas_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeMnistImgPil2Rgb(const ConfigNode& entry, const BuildContext& context);
std::unique_ptr<Options> MakeMnistImgPil2RgbOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_MNIST_IMG_PIL_2_RGB_H_
