// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/to_tensor.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct ToTensorOptions : public Options {
  void VisitFields(FieldVisitor& visitor) override {}
};

struct NormalizeOptions : public Options {
  std::vector<double> mean;
  std::vector<double> std;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("mean", &mean, Doc("Subtracted: one number, or one for each channel."));
    visitor.Field("std", &std, Doc("Divides: one number, or one for each channel.").Above(0.0));
  }
};

absl::StatusOr<std::unique_ptr<Transform>> MakeNamed(absl::string_view name, PixelFloats floats,
                                                     const ConfigNode& entry) {
  ToTensorOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  return std::make_unique<ToTensor>(name, floats);
}

}  // namespace

absl::Status ToTensor::ApplyToView(const TransformContext& context, int index, View* view) const {
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  view->table = &table_;
  return absl::OkStatus();
}

absl::Status ToTensor::PlanView(const TransformContext&, int, ViewPlan*) const {
  return absl::OkStatus();  // the batch has the table
}

Normalize::Normalize(const std::vector<double>& mean, const std::vector<double>& std) {
  for (int i = 0; i < kPixelFloats; ++i) tables_[i] = MakeNormalizeTable(mean, std, static_cast<PixelFloats>(i));
}

absl::Status Normalize::ApplyToView(const TransformContext& context, int index, View* view) const {
  if (view->table == nullptr || view->table->normalized) {
    return absl::InvalidArgumentError(view->table == nullptr ? "stands before ToTensor, expected after it"
                                                             : "stands twice, expected once");
  }
  SSL_RETURN_IF_ERROR(CheckNothingErased(*view));
  view->table = &tables_[static_cast<int>(view->table->floats)];
  return absl::OkStatus();
}

absl::Status Normalize::PlanView(const TransformContext&, int, ViewPlan*) const {
  return absl::OkStatus();  // the batch has the table
}

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilToRawTensor(const ConfigNode& entry, const BuildContext& context) {
  return MakeNamed("ImgPilToRawTensor", PixelFloats::kRaw, entry);
}

absl::StatusOr<std::unique_ptr<Transform>> MakeImgToTensor(const ConfigNode& entry, const BuildContext& context) {
  return MakeNamed("ImgToTensor", PixelFloats::kUnit, entry);
}

absl::StatusOr<std::unique_ptr<Transform>> MakeToTensor(const ConfigNode& entry, const BuildContext& context) {
  return MakeNamed("ToTensor", PixelFloats::kUnit, entry);
}

absl::StatusOr<std::unique_ptr<Transform>> MakeNormalize(const ConfigNode& entry, const BuildContext& context) {
  NormalizeOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  const size_t size = options.mean.size();
  if (options.std.size() != size || (size != 1 && size != 3)) {
    return absl::InvalidArgumentError(
        absl::StrCat(TransformKey(entry, "mean"), " is [", absl::StrJoin(options.mean, ", "), "] and std is [",
                     absl::StrJoin(options.std, ", "), "], expected 1 or 3 numbers, equally many in both"));
  }
  return std::make_unique<Normalize>(options.mean, options.std);
}

std::unique_ptr<Options> MakeToTensorOptions() { return std::make_unique<ToTensorOptions>(); }

std::unique_ptr<Options> MakeNormalizeOptions() { return std::make_unique<NormalizeOptions>(); }

}  // namespace ssl
