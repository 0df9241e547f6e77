// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/random_resized_crop.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct RandomResizedCropOptions : public Options {
  ConfigNode size;
  std::vector<double> scale = {0.08, 1.0};
  std::vector<double> ratio = {3.0 / 4.0, 4.0 / 3.0};

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("size", &size, Doc("Side of the result, or [height, width].").Unit("pixels"));
    visitor.Field("scale", &scale, Doc("Smallest and largest part of the picture's area."));
    visitor.Field("ratio", &ratio, Doc("Smallest and largest width / height."));
  }
};

// A number, or two numbers.
absl::Status ReadSize(const ConfigNode& entry, const ConfigNode& size, RandomCropRule* rule) {
  std::vector<int64_t> sides;
  const std::vector<ConfigNode> single = {size};
  for (const ConfigNode& side : size.is_list() ? size.items() : single) {
    const absl::StatusOr<int64_t> value = side.AsInt();
    if (value.ok() && *value >= 1 && *value <= 65535) sides.push_back(*value);
  }
  if (sides.size() != (size.is_list() ? size_t{2} : size_t{1}) || (size.is_list() && size.items().size() != 2)) {
    return absl::InvalidArgumentError(
        absl::StrCat(TransformKey(entry, "size"), " is ", size.Describe(), ", expected one or two numbers of pixels"));
  }
  rule->height = static_cast<int>(sides.front());
  rule->width = static_cast<int>(sides.back());
  return absl::OkStatus();
}

}  // namespace

void DrawCrop(const TransformContext& context, int view, const RandomCropRule& rule, const Image& source,
              Image* result) {
  CounterRandom random = context.Random(view);
  const CropBox box = DrawCropBox(random, source.height(), source.width(), rule.scale, rule.ratio);
  context.scratch.resampler.CropAndResize(source, box, rule.height, rule.width, result);
}

absl::Status RandomResizedCrop::Apply(const TransformContext& context, Sample* sample) const {
  Image& source = context.scratch.image;
  for (int v = 0; v < sample->num_views(); ++v) {
    View& view = sample->view(v);
    SSL_RETURN_IF_ERROR(CheckPixelsOpen(view));
    ApplyFlip(&view);
    std::swap(source, view.image);
    DrawCrop(context, v, rule_, source, &view.image);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeRandomResizedCrop(const ConfigNode& entry, const BuildContext& context) {
  RandomResizedCropOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  RandomCropRule rule;
  SSL_RETURN_IF_ERROR(ReadSize(entry, options.size, &rule));
  SSL_ASSIGN_OR_RETURN(rule.scale, ParseInterval(entry, "scale", options.scale, 1.0));
  SSL_ASSIGN_OR_RETURN(rule.ratio, ParseInterval(entry, "ratio", options.ratio, 1000.0));
  return std::make_unique<RandomResizedCrop>(rule);
}

}  // namespace ssl
