// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/random_resized_crop.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "ssl/base/status_macros.h"
#include "ssl/data/image/resample.h"
#include "ssl/data/transforms/draw_view_plan.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct RandomResizedCropOptions : public Options {
  ConfigNode size;
  std::vector<double> scale = {0.08, 1.0};
  std::vector<double> ratio = {3.0 / 4.0, 4.0 / 3.0};
  std::string interpolation = "bilinear";

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("size", &size, Doc("Side of the result, or [height, width].").Unit("pixels"));
    visitor.Field("scale", &scale, Doc("Smallest and largest part of the image's area."));
    visitor.Field("ratio", &ratio, Doc("Smallest and largest width / height."));
    visitor.Field("interpolation", &interpolation, Doc("bilinear or bicubic, or Pillow's number of it."));
  }
};

// height, width: of the full image.
CropBox DrawBox(const TransformContext& context, int view, const RandomCropRule& rule, int height, int width) {
  CounterRandom random = context.Random(view);
  return DrawCropBox(random, height, width, rule.scale, rule.ratio);
}

}  // namespace

NeededPixels NeededForCrop(const TransformContext& context, int view, const RandomCropRule& rule, int height,
                           int width) {
  return NeededFor(DrawBox(context, view, rule, height, width), rule.height, rule.width);
}

void DrawCrop(const TransformContext& context, int view, const RandomCropRule& rule, const Image& source,
              Image* result) {
  const CropBox box = DrawBox(context, view, rule, source.full_height(), source.full_width());
  context.scratch.Get<Resampler>().CropAndResize(source, box, rule.height, rule.width, result, rule.interpolation);
}

NeededPixels RandomResizedCrop::Needs(const TransformContext& context, int views, int height, int width) const {
  NeededPixels needed = NeededForCrop(context, 0, rule_, height, width);
  for (int v = 1; v < views; ++v) needed = Union(needed, NeededForCrop(context, v, rule_, height, width));
  return needed;
}

absl::Status RandomResizedCrop::ApplyToView(const TransformContext& context, int index, View* view) const {
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  ApplyFlip(view);
  Image& source = context.scratch.image;
  std::swap(source, view->image);
  DrawCrop(context, index, rule_, source, &view->image);
  return absl::OkStatus();
}

absl::Status RandomResizedCrop::Plan(const TransformContext& context, const Image& image,
                                     std::vector<ViewPlan>* plans) const {
  SSL_RETURN_IF_ERROR(CheckUntouched(*plans));
  for (size_t v = 0; v < plans->size(); ++v) {
    CounterRandom random = context.Random(static_cast<int>(v));
    DrawCropPlan(&random, rule_, image, &(*plans)[v]);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeRandomResizedCrop(const ConfigNode& entry, const BuildContext& context) {
  RandomResizedCropOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  RandomCropRule rule;
  SSL_ASSIGN_OR_RETURN(const ImageSize size, ParseSize(entry, "size", options.size));
  rule.height = size.height;
  rule.width = size.width;
  SSL_ASSIGN_OR_RETURN(rule.interpolation, ParseInterpolation(entry, "interpolation", options.interpolation));
  SSL_ASSIGN_OR_RETURN(rule.scale, ParseInterval(entry, "scale", options.scale, 1.0));
  SSL_ASSIGN_OR_RETURN(rule.ratio, ParseInterval(entry, "ratio", options.ratio, 1000.0));
  return std::make_unique<RandomResizedCrop>(rule);
}

std::unique_ptr<Options> MakeRandomResizedCropOptions() { return std::make_unique<RandomResizedCropOptions>(); }

}  // namespace ssl
