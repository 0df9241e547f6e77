// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_pil_resize_larger_side.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "ssl/base/status_macros.h"
#include "ssl/data/image/resample.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct ImgPilResizeLargerSideOptions : public Options {
  int64_t size = 1024;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("size", &size, Doc("Length of the larger side.").Between(1, 65535).Unit("pixels"));
  }
};

}  // namespace

absl::Status ImgPilResizeLargerSide::ApplyToView(const TransformContext& context, int index, View* view) const {
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  const int height = view->image.height();
  const int width = view->image.width();
  const double ratio = static_cast<double>(side_) / std::max(height, width);
  // At least a pixel: Pillow refuses images without.
  const int new_height = std::max(1, static_cast<int>(std::nearbyint(height * ratio)));
  const int new_width = std::max(1, static_cast<int>(std::nearbyint(width * ratio)));
  if (new_height == height && new_width == width) return absl::OkStatus();
  ApplyFlip(view);
  Image& source = context.scratch.image;
  std::swap(source, view->image);
  context.scratch.Get<Resampler>().CropAndResize(source, {0, 0, height, width}, new_height, new_width, &view->image);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilResizeLargerSide(const ConfigNode& entry,
                                                                      const BuildContext& context) {
  ImgPilResizeLargerSideOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  return std::make_unique<ImgPilResizeLargerSide>(static_cast<int>(options.size));
}

std::unique_ptr<Options> MakeImgPilResizeLargerSideOptions() {
  return std::make_unique<ImgPilResizeLargerSideOptions>();
}

}  // namespace ssl
