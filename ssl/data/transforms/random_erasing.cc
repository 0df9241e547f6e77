// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/random_erasing.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/draw_normal.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct RandomErasingOptions : public Options {
  double p = 0.5;
  std::vector<double> scale = {0.02, 0.33};
  std::vector<double> ratio = {0.3, 3.3};
  ConfigNode value;
  bool inplace = false;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("p", &p, Doc("Probability.").Between(0.0, 1.0));
    visitor.Field("scale", &scale, Doc("Smallest and largest part of the image's area."));
    visitor.Field("ratio", &ratio, Doc("Smallest and largest height / width."));
    visitor.Field("value", &value, Doc("What is written: a number, one for each of 3 channels, or random (noise)."));
    visitor.Field("inplace", &inplace, Doc("Without effect: nothing is copied."));
  }
};

// torchvision's rule: up to 10 tries of an area and a ratio; an empty box when none fits.
CropBox DrawErasedBox(CounterRandom& random, const Image& image, const ErasingRule& rule) {
  const double area = static_cast<double>(image.height()) * image.width();
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double part = area * random.Uniform(rule.scale.lo, rule.scale.hi);
    const double ratio = std::exp(random.Uniform(std::log(rule.ratio.lo), std::log(rule.ratio.hi)));
    const int height = static_cast<int>(std::nearbyint(std::sqrt(part * ratio)));
    const int width = static_cast<int>(std::nearbyint(std::sqrt(part / ratio)));
    if (height >= image.height() || width >= image.width()) continue;
    const int top = static_cast<int>(random.UniformInt(0, image.height() - height));
    const int left = static_cast<int>(random.UniformInt(0, image.width() - width));
    return {top, left, height, width};
  }
  return {};
}

absl::Status ReadValue(const ConfigNode& entry, const ConfigNode& value, ErasingRule* rule) {
  if (value.is_null()) return absl::OkStatus();
  rule->noise = value.is_scalar() && value.text() == "random";
  if (rule->noise) return absl::OkStatus();
  const std::vector<ConfigNode> single = {value};
  const std::vector<ConfigNode>& numbers = value.is_list() ? value.items() : single;
  bool valid = numbers.size() == 1 || numbers.size() == 3;
  for (size_t c = 0; valid && c < 3; ++c) {
    const absl::StatusOr<double> number = numbers[c % numbers.size()].AsDouble();
    valid = number.ok();
    if (valid) rule->value[c] = static_cast<float>(*number);
  }
  if (valid) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(TransformKey(entry, "value"), " is ", value.Describe(), ", expected 1 or 3 numbers, or 'random'"));
}

}  // namespace

absl::Status RandomErasing::ApplyToView(const TransformContext& context, int index, View* view) const {
  if (view->table == nullptr) return absl::InvalidArgumentError("stands before ToTensor, expected after it");
  SSL_RETURN_IF_ERROR(CheckNothingErased(*view));
  CounterRandom random = context.Random(index);
  if (!random.Bernoulli(rule_.probability)) return absl::OkStatus();
  CropBox box = DrawErasedBox(random, view->image, rule_);
  const int64_t count = static_cast<int64_t>(box.height) * box.width;
  if (count == 0) return absl::OkStatus();
  // The box is drawn as the viewer sees it; a mirroring is carried out when the view is written.
  if (view->flipped) box.left = view->image.width() - box.width - box.left;
  view->erased.box = box;
  view->erased.values.clear();
  for (int64_t i = 0; i < 3 * count; ++i) {
    view->erased.values.push_back(rule_.noise ? static_cast<float>(DrawNormal(random)) : rule_.value[i % 3]);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeRandomErasing(const ConfigNode& entry, const BuildContext& context) {
  RandomErasingOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  ErasingRule rule;
  rule.probability = options.p;
  SSL_ASSIGN_OR_RETURN(rule.scale, ParseInterval(entry, "scale", options.scale, 1.0));
  SSL_ASSIGN_OR_RETURN(rule.ratio, ParseInterval(entry, "ratio", options.ratio, 1000.0));
  SSL_RETURN_IF_ERROR(ReadValue(entry, options.value, &rule));
  return std::make_unique<RandomErasing>(rule);
}

std::unique_ptr<Options> MakeRandomErasingOptions() { return std::make_unique<RandomErasingOptions>(); }

}  // namespace ssl
