// SPDX-License-Identifier: Apache-2.0
//
// CenterCrop (torchvision): the middle of every view; a view that is smaller is padded with black on both sides first.
// Parameter: size (a number, or [height, width]).
#ifndef SSL_DATA_TRANSFORMS_CENTER_CROP_H_
#define SSL_DATA_TRANSFORMS_CENTER_CROP_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/image/crop_box.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {

// Where the middle lies; beyond the image where that is smaller than `size`.
CropBox CenterBox(int height, int width, const ImageSize& size);

class CenterCrop : public ViewTransform {
 public:
  explicit CenterCrop(const ImageSize& size) : size_(size) {}

  absl::string_view name() const override { return "CenterCrop"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;

 private:
  ImageSize size_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeCenterCrop(const ConfigNode& entry, const BuildContext& context);
std::unique_ptr<Options> MakeCenterCropOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_CENTER_CROP_H_
