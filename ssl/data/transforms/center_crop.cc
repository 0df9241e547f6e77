// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/center_crop.h"

#include <cmath>
#include <utility>

#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/crop_image.h"
#include "ssl/data/transforms/pixel_view.h"

namespace ssl {
namespace {

struct CenterCropOptions : public Options {
  ConfigNode size;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("size", &size, Doc("Side of the result, or [height, width].").Unit("pixels"));
  }
};

// Where `target` pixels begin in the middle of `available` ones. A half is rounded to even when cutting, as Python's
// round does; padding has its odd pixel at the end.
int CenterStart(int available, int target) {
  if (target > available) return -((target - available) / 2);
  return static_cast<int>(std::nearbyint((available - target) / 2.0));
}

}  // namespace

CropBox CenterBox(int height, int width, const ImageSize& size) {
  return {CenterStart(height, size.height), CenterStart(width, size.width), size.height, size.width};
}

absl::Status CenterCrop::ApplyToView(const TransformContext& context, int index, View* view) const {
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  ApplyFlip(view);
  Image& source = context.scratch.image;
  std::swap(source, view->image);
  CropImage(source, CenterBox(source.height(), source.width(), size_), &view->image);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeCenterCrop(const ConfigNode& entry, const BuildContext& context) {
  CenterCropOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  SSL_ASSIGN_OR_RETURN(const ImageSize size, ParseSize(entry, "size", options.size));
  return std::make_unique<CenterCrop>(size);
}

std::unique_ptr<Options> MakeCenterCropOptions() { return std::make_unique<CenterCropOptions>(); }

}  // namespace ssl
