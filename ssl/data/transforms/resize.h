// SPDX-License-Identifier: Apache-2.0
//
// Resize (torchvision, Pillow's arithmetic): scales every view. Parameters: size (a number: length of the shorter side,
// the other one keeps the proportions; or [height, width]), interpolation (bilinear or bicubic).
#ifndef SSL_DATA_TRANSFORMS_RESIZE_H_
#define SSL_DATA_TRANSFORMS_RESIZE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/image/resample.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {

// The size of an image whose shorter side becomes `shorter_side`. The longer one is rounded down.
ImageSize SizeForShorterSide(int height, int width, int shorter_side);

class Resize : public ViewTransform {
 public:
  // keep_proportions: size.height is the length of the shorter side.
  Resize(const ImageSize& size, bool keep_proportions, Interpolation interpolation)
      : size_(size), keep_proportions_(keep_proportions), interpolation_(interpolation) {}

  absl::string_view name() const override { return "Resize"; }
  NeededPixels Needs(const TransformContext& context, int views, int height, int width) const override;
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;

 private:
  // Of the result.
  ImageSize SizeFor(int height, int width) const {
    return keep_proportions_ ? SizeForShorterSide(height, width, size_.height) : size_;
  }

  ImageSize size_;
  bool keep_proportions_;
  Interpolation interpolation_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeResize(const ConfigNode& entry, const BuildContext& context);
std::unique_ptr<Options> MakeResizeOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_RESIZE_H_
