// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/rand_augment.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

// An operation, its variant whose strength grows with the magnitude, and timm's weight.
struct Choice {
  const char* name;
  const char* increasing;
  double weight;
};

constexpr Choice kChoices[] = {
    {"AutoContrast", "AutoContrast", 0.025},
    {"Equalize", "Equalize", 0.005},
    {"Invert", "Invert", 0.0},
    {"Rotate", "Rotate", 0.3},
    {"Posterize", "PosterizeIncreasing", 0.0},
    {"Solarize", "SolarizeIncreasing", 0.005},
    {"SolarizeAdd", "SolarizeAdd", 0.005},
    {"Color", "ColorIncreasing", 0.025},
    {"Contrast", "ContrastIncreasing", 0.005},
    {"Brightness", "BrightnessIncreasing", 0.005},
    {"Sharpness", "SharpnessIncreasing", 0.025},
    {"ShearX", "ShearX", 0.2},
    {"ShearY", "ShearY", 0.2},
    {"TranslateXRel", "TranslateXRel", 0.1},
    {"TranslateYRel", "TranslateYRel", 0.1},
};
constexpr int kWeighted = 13;  // choices with a weight above 0

struct RandAugmentOptions : public Options {
  double magnitude = 10.0;
  double magnitude_std = 0.0;
  int64_t num_layers = 2;
  bool increasing_severity = false;
  ConfigNode weight_choice;
  ConfigNode choice_weights;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("magnitude", &magnitude, Doc("Strength of the operations.").Between(0.0, 10.0));
    visitor.Field("magnitude_std", &magnitude_std, Doc("Standard deviation of the strength.").AtLeast(0.0));
    visitor.Field("num_layers", &num_layers, Doc("Operations for each view.").Between(1, 1000));
    visitor.Field("increasing_severity", &increasing_severity, Doc("Every operation grows stronger with magnitude."));
    visitor.Field("weight_choice", &weight_choice, Doc("0: operations are drawn by weights, each at most once."));
    visitor.Field("choice_weights", &choice_weights, Doc("Without effect, as in VISSL, which reads weight_choice."));
  }
};

// Whether operations have weights: weight_choice is 0, and not none.
absl::StatusOr<bool> ReadWeightChoice(const ConfigNode& entry, const RandAugmentOptions& options) {
  if (options.weight_choice.is_null()) return false;
  const absl::StatusOr<int64_t> number = options.weight_choice.AsInt();
  if (!number.ok() || *number != 0) {
    return absl::InvalidArgumentError(absl::StrCat(TransformKey(entry, "weight_choice"), " is ",
                                                   options.weight_choice.Describe(), ", expected 0 or no such key"));
  }
  if (options.num_layers <= kWeighted) return true;
  return absl::InvalidArgumentError(absl::StrCat(TransformKey(entry, "num_layers"), " is ", options.num_layers,
                                                 ", expected at most ", kWeighted,
                                                 ", the operations that weight_choice draws without repetition"));
}

// One of the positions that are not in `drawn`, by their weights.
size_t DrawByWeight(const std::vector<double>& weights, uint64_t drawn, CounterRandom& random) {
  const auto weight = [&](size_t i) { return (drawn >> i & 1) != 0 ? 0.0 : weights[i]; };
  double sum = 0.0;
  for (size_t i = 0; i < weights.size(); ++i) sum += weight(i);
  double rest = random.Uniform() * sum;
  size_t last = 0;  // of a weight above 0: rounding may leave a rest
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weight(i) == 0.0) continue;
    last = i;
    rest -= weight(i);
    if (rest < 0.0) break;
  }
  return last;
}

}  // namespace

absl::Status RandAugment::ApplyToView(const TransformContext& context, int index, View* view) const {
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  ApplyFlip(view);
  CounterRandom random = context.Random(index);
  uint64_t drawn = 0;
  for (int layer = 0; layer < num_layers_; ++layer) {
    const size_t choice = weights_.empty() ? random.UniformInt(0, static_cast<int64_t>(steps_.size()) - 1)
                                           : DrawByWeight(weights_, drawn, random);
    drawn |= uint64_t{1} << choice;
    ApplyAugmentStep(steps_[choice], random, context.scratch, &view->image);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeRandAugment(const ConfigNode& entry, const BuildContext& context) {
  RandAugmentOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  SSL_ASSIGN_OR_RETURN(const bool weighted, ReadWeightChoice(entry, options));
  std::vector<AugmentStep> steps;
  std::vector<double> weights;
  for (const Choice& choice : kChoices) {
    const char* name = options.increasing_severity ? choice.increasing : choice.name;
    steps.push_back({FindAugmentOperation(name), /*probability=*/0.5, options.magnitude, options.magnitude_std});
    if (weighted) weights.push_back(choice.weight);
  }
  return std::make_unique<RandAugment>(std::move(steps), static_cast<int>(options.num_layers), std::move(weights));
}

std::unique_ptr<Options> MakeRandAugmentOptions() { return std::make_unique<RandAugmentOptions>(); }

}  // namespace ssl
