// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/resize.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/pixel_view.h"

namespace ssl {
namespace {

struct ResizeOptions : public Options {
  ConfigNode size;
  std::string interpolation = "bilinear";

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("size", &size, Doc("Length of the shorter side, or [height, width].").Unit("pixels"));
    visitor.Field("interpolation", &interpolation, Doc("bilinear or bicubic, or Pillow's number of it."));
  }
};

}  // namespace

ImageSize SizeForShorterSide(int height, int width, int shorter_side) {
  const auto scaled = [shorter_side](int longer, int shorter) {
    return static_cast<int>(static_cast<int64_t>(shorter_side) * longer / shorter);
  };
  return height < width ? ImageSize{shorter_side, scaled(width, height)}
                        : ImageSize{scaled(height, width), shorter_side};
}

NeededPixels Resize::Needs(const TransformContext&, int, int height, int width) const {
  const ImageSize size = SizeFor(height, width);
  return NeededFor(WholeImage(height, width).box, size.height, size.width);
}

absl::Status Resize::ApplyToView(const TransformContext& context, int index, View* view) const {
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  const int height = view->image.full_height();
  const int width = view->image.full_width();
  const ImageSize size = SizeFor(height, width);
  if (size.height == height && size.width == width) return absl::OkStatus();
  ApplyFlip(view);
  Image& source = context.scratch.image;
  std::swap(source, view->image);
  context.scratch.Get<Resampler>().CropAndResize(source, {0, 0, height, width}, size.height, size.width, &view->image,
                                                 interpolation_);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeResize(const ConfigNode& entry, const BuildContext& context) {
  ResizeOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  SSL_ASSIGN_OR_RETURN(const ImageSize size, ParseSize(entry, "size", options.size));
  SSL_ASSIGN_OR_RETURN(const Interpolation interpolation,
                       ParseInterpolation(entry, "interpolation", options.interpolation));
  const bool keep_proportions = !options.size.is_list() || options.size.items().size() == 1;
  return std::make_unique<Resize>(size, keep_proportions, interpolation);
}

std::unique_ptr<Options> MakeResizeOptions() { return std::make_unique<ResizeOptions>(); }

}  // namespace ssl
