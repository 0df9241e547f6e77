// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/denormalizer.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/fields.h"
#include "ssl/config/reader.h"
#include "ssl/data/image/lab.h"

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

bool MakesFloats(const ConfigNode& transform) {
  static constexpr absl::string_view kNames[] = {"ImgPil2LabTensor", "ImgPilToRawTensor", "ImgToTensor", "Normalize",
                                                 "ToTensor"};
  const ConfigNode* name = transform.Find("name");
  return name != nullptr && std::find(std::begin(kNames), std::end(kNames), name->text()) != std::end(kNames);
}

bool MakesFloatsInside(const ConfigNode& transform) {
  const ConfigNode* list = transform.Find("transforms");
  if (list == nullptr) return false;
  return std::any_of(list->items().begin(), list->items().end(),
                     [](const ConfigNode& inner) { return MakesFloats(inner) || MakesFloatsInside(inner); });
}

}  // namespace

bool TreatsViewsAlike(const ConfigNode& transforms) {
  return std::none_of(transforms.items().begin(), transforms.items().end(), [](const ConfigNode& transform) {
    const ConfigNode* indices = transform.Find("indices");
    const bool is_for_some = indices != nullptr && !indices->items().empty();
    return (is_for_some && MakesFloats(transform)) || MakesFloatsInside(transform);
  });
}

Denormalizer::Denormalizer(at::Tensor mean, at::Tensor std, PixelFloats floats)
    : mean_(std::move(mean)), std_(std::move(std)), floats_(floats) {}

absl::StatusOr<Denormalizer> Denormalizer::Create(const ConfigNode& transforms) {
  Normalization normalization;
  PixelFloats floats = PixelFloats::kUnit;
  for (const ConfigNode& transform : transforms.items()) {
    const ConfigNode* name = transform.Find("name");
    if (name != nullptr && name->text() == "ImgPilToRawTensor") floats = PixelFloats::kRaw;
    if (name != nullptr && name->text() == "ImgPil2LabTensor") floats = PixelFloats::kLab;
    if (name == nullptr || name->text() != "Normalize") continue;
    SSL_RETURN_IF_ERROR(ReadOptions(transform, "Normalize", UnknownKeys::kIgnore, &normalization));
  }
  return Denormalizer(PerChannel(normalization.mean), PerChannel(normalization.std), floats);
}

// Images are 8-bit until they are normalised, so rounding gives exactly the value that was there.
at::Tensor Denormalizer::ToLevels(const at::Tensor& images) const {
  at::Tensor floats = images.mul(std_).add_(mean_);
  if (floats_ == PixelFloats::kLab) {
    return floats.add_(PerChannel({50.0, 128.0, 128.0})).mul_(PerChannel({kWhitePixel / 100.0, 1.0, 1.0})).round_();
  }
  return floats.mul_(floats_ == PixelFloats::kRaw ? 1.0 : kWhitePixel).round_();
}

at::Tensor Denormalizer::ToUnit(const at::Tensor& images) const { return ToLevels(images).div_(kWhitePixel); }

at::Tensor Denormalizer::ToPixels(const at::Tensor& images) const {
  const at::Tensor values = ToLevels(images).clamp_(0.0, kWhitePixel);
  at::Tensor pixels = values.permute({0, 2, 3, 1}).to(at::kByte).contiguous();
  if (floats_ == PixelFloats::kLab) {
    auto* bytes = pixels.mutable_data_ptr<uint8_t>();
    ConvertFromLab(bytes, pixels.numel() / 3, bytes);
  }
  return pixels;
}

}  // namespace ssl
