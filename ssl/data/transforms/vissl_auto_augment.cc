// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/vissl_auto_augment.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct PolicyStep {
  absl::string_view name;
  double probability;
  double magnitude;
};
using Policy = PolicyStep[25][2];

// EfficientNet's, which no paper gives.
constexpr Policy kV0 = {
    {{"Equalize", 0.8, 1}, {"ShearY", 0.8, 4}},        {{"Color", 0.4, 9}, {"Equalize", 0.6, 3}},
    {{"Color", 0.4, 1}, {"Rotate", 0.6, 8}},           {{"Solarize", 0.8, 3}, {"Equalize", 0.4, 7}},
    {{"Solarize", 0.4, 2}, {"Solarize", 0.6, 2}},      {{"Color", 0.2, 0}, {"Equalize", 0.8, 8}},
    {{"Equalize", 0.4, 8}, {"SolarizeAdd", 0.8, 3}},   {{"ShearX", 0.2, 9}, {"Rotate", 0.6, 8}},
    {{"Color", 0.6, 1}, {"Equalize", 1.0, 2}},         {{"Invert", 0.4, 9}, {"Rotate", 0.6, 0}},
    {{"Equalize", 1.0, 9}, {"ShearY", 0.6, 3}},        {{"Color", 0.4, 7}, {"Equalize", 0.6, 0}},
    {{"Posterize", 0.4, 6}, {"AutoContrast", 0.4, 7}}, {{"Solarize", 0.6, 8}, {"Color", 0.6, 9}},
    {{"Solarize", 0.2, 4}, {"Rotate", 0.8, 9}},        {{"Rotate", 1.0, 7}, {"TranslateYRel", 0.8, 9}},
    {{"ShearX", 0.0, 0}, {"Solarize", 0.8, 4}},        {{"ShearY", 0.8, 0}, {"Color", 0.6, 4}},
    {{"Color", 1.0, 0}, {"Rotate", 0.6, 2}},           {{"Equalize", 0.8, 4}, {"Equalize", 0.0, 8}},
    {{"Equalize", 1.0, 4}, {"AutoContrast", 0.6, 2}},  {{"ShearY", 0.4, 7}, {"SolarizeAdd", 0.6, 7}},
    {{"Posterize", 0.8, 2}, {"Solarize", 0.6, 10}},    {{"Solarize", 0.6, 8}, {"Equalize", 0.6, 1}},
    {{"Color", 0.8, 6}, {"Rotate", 0.4, 5}},
};

// The paper's, table 9.
constexpr Policy kOriginal = {
    {{"Posterize", 0.4, 8}, {"Rotate", 0.6, 9}},  {{"Solarize", 0.6, 5}, {"AutoContrast", 0.6, 5}},
    {{"Equalize", 0.8, 8}, {"Equalize", 0.6, 3}}, {{"Posterize", 0.6, 7}, {"Posterize", 0.6, 6}},
    {{"Equalize", 0.4, 7}, {"Solarize", 0.2, 4}}, {{"Equalize", 0.4, 4}, {"Rotate", 0.8, 8}},
    {{"Solarize", 0.6, 3}, {"Equalize", 0.6, 7}}, {{"Posterize", 0.8, 5}, {"Equalize", 1.0, 2}},
    {{"Rotate", 0.2, 3}, {"Solarize", 0.6, 8}},   {{"Equalize", 0.6, 8}, {"Posterize", 0.4, 6}},
    {{"Rotate", 0.8, 8}, {"Color", 0.4, 0}},      {{"Rotate", 0.4, 9}, {"Equalize", 0.6, 2}},
    {{"Equalize", 0.0, 7}, {"Equalize", 0.8, 8}}, {{"Invert", 0.6, 4}, {"Equalize", 1.0, 8}},
    {{"Color", 0.6, 4}, {"Contrast", 1.0, 8}},    {{"Rotate", 0.8, 8}, {"Color", 1.0, 2}},
    {{"Color", 0.8, 8}, {"Solarize", 0.8, 7}},    {{"Sharpness", 0.4, 7}, {"Invert", 0.6, 8}},
    {{"ShearX", 0.6, 5}, {"Equalize", 1.0, 9}},   {{"Color", 0.4, 0}, {"Equalize", 0.6, 3}},
    {{"Equalize", 0.4, 7}, {"Solarize", 0.2, 4}}, {{"Solarize", 0.6, 5}, {"AutoContrast", 0.6, 5}},
    {{"Invert", 0.6, 4}, {"Equalize", 1.0, 8}},   {{"Color", 0.6, 4}, {"Contrast", 1.0, 8}},
    {{"Equalize", 0.8, 8}, {"Equalize", 0.6, 3}},
};

// A policy, and which of the three posterizes it means.
struct NamedPolicy {
  absl::string_view name;
  const Policy& policy;
  absl::string_view posterize;
};

const NamedPolicy kPolicies[] = {
    {"original", kOriginal, "PosterizeOriginal"},
    {"originalr", kOriginal, "PosterizeIncreasing"},
    {"v0", kV0, "Posterize"},
    {"v0r", kV0, "PosterizeIncreasing"},
};

struct VisslAutoAugmentOptions : public Options {
  std::string policy_name = "v0";
  double magnitude_std = 0.0;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("policy_name", &policy_name,
                  Doc("Which pairs of operations.").OneOf({"original", "originalr", "v0", "v0r"}));
    visitor.Field("magnitude_std", &magnitude_std, Doc("Standard deviation of the magnitudes.").AtLeast(0.0));
  }
};

AugmentStep MakeStep(const NamedPolicy& policy, const PolicyStep& step, double magnitude_std) {
  const absl::string_view name = step.name == "Posterize" ? policy.posterize : step.name;
  return {FindAugmentOperation(name), step.probability, step.magnitude, magnitude_std};
}

}  // namespace

absl::Status VisslAutoAugment::ApplyToView(const TransformContext& context, int index, View* view) const {
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  ApplyFlip(view);
  CounterRandom random = context.Random(index);
  const AugmentPair& pair = policy_[random.UniformInt(0, static_cast<int64_t>(policy_.size()) - 1)];
  for (const AugmentStep& step : pair) ApplyAugmentStep(step, random, context.scratch, &view->image);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeVisslAutoAugment(const ConfigNode& entry, const BuildContext& context) {
  VisslAutoAugmentOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  std::vector<AugmentPair> pairs;
  for (const NamedPolicy& named : kPolicies) {
    if (named.name != options.policy_name) continue;
    for (const PolicyStep(&pair)[2] : named.policy) {
      pairs.push_back(
          {MakeStep(named, pair[0], options.magnitude_std), MakeStep(named, pair[1], options.magnitude_std)});
    }
  }
  return std::make_unique<VisslAutoAugment>(std::move(pairs));
}

std::unique_ptr<Options> MakeVisslAutoAugmentOptions() { return std::make_unique<VisslAutoAugmentOptions>(); }

}  // namespace ssl
