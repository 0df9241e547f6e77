// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/denormalizer.h"

#include <ATen/ops/tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "ssl/base/status_macros.h"
#include "ssl/config/fields.h"
#include "ssl/config/reader.h"

namespace ssl {
namespace {

constexpr double kWhitePixel = 255.0;

// The parameters of the transform Normalize.
struct Normalization : Options {
  std::vector<double> mean = {0.0};
  std::vector<double> std = {1.0};
  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("mean", &mean, Doc("per channel"));
    visitor.Field("std", &std, Doc("per channel"));
  }
};

// [1, C, 1, 1] of one number for each channel, or one for all.
at::Tensor PerChannel(const std::vector<double>& values) {
  return at::tensor(values, at::kFloat).view({1, static_cast<int64_t>(values.size()), 1, 1});
}

}  // namespace

Denormalizer::Denormalizer(at::Tensor mean, at::Tensor std, double white)
    : mean_(std::move(mean)), std_(std::move(std)), white_(white) {}

absl::StatusOr<Denormalizer> Denormalizer::Create(const ConfigNode& transforms) {
  Normalization normalization;
  double white = 1.0;
  for (const ConfigNode& transform : transforms.items()) {
    const ConfigNode* name = transform.Find("name");
    if (name != nullptr && name->text() == "ImgPilToRawTensor") white = kWhitePixel;
    if (name == nullptr || name->text() != "Normalize") continue;
    SSL_RETURN_IF_ERROR(ReadOptions(transform, "Normalize", UnknownKeys::kIgnore, &normalization));
  }
  return Denormalizer(PerChannel(normalization.mean), PerChannel(normalization.std), white);
}

// Images are 8-bit until they are normalised, so rounding gives exactly the value that was there.
at::Tensor Denormalizer::ToUnit(const at::Tensor& images) const {
  return images.mul(std_).add_(mean_).mul_(kWhitePixel / white_).round_().div_(kWhitePixel);
}

at::Tensor Denormalizer::ToPixels(const at::Tensor& images) const {
  const at::Tensor values = images.mul(std_).add_(mean_).mul_(kWhitePixel / white_).round_().clamp_(0.0, kWhitePixel);
  return values.permute({0, 2, 3, 1}).to(at::kByte).contiguous();
}

}  // namespace ssl
