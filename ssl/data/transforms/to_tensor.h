// SPDX-License-Identifier: Apache-2.0
//
// ToTensor (torchvision) and ImgToTensor (VISSL): pixels become floats in [0, 1]; ImgPilToRawTensor (VISSL): floats in
// [0, 255]. Normalize (torchvision): (value - mean) / std per channel, after one of them; parameters mean and std, 1 or
// 3 numbers each. All only note a table; the values are computed when a view is written into the batch.
#ifndef SSL_DATA_TRANSFORMS_TO_TENSOR_H_
#define SSL_DATA_TRANSFORMS_TO_TENSOR_H_

#include <array>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/image/pixel_table.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/view_planner.h"

namespace ssl {

class ToTensor final : public ViewTransform, public StepPlanner {
 public:
  ToTensor() : ToTensor("ToTensor", PixelFloats::kUnit) {}
  // name: of one of the three; it must live as long as this.
  ToTensor(absl::string_view name, PixelFloats floats) : name_(name), table_(MakeFloatsTable(floats)) {}

  absl::string_view name() const override { return name_; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;
  absl::Status PlanView(const TransformContext& context, int index, ViewPlan* plan) const override;
  FloatRule float_rule() const override { return FloatRule::kTable; }

 private:
  absl::string_view name_;
  PixelTable table_;
};

class Normalize final : public ViewTransform, public StepPlanner {
 public:
  Normalize(const std::vector<double>& mean, const std::vector<double>& std);

  absl::string_view name() const override { return "Normalize"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;
  absl::Status PlanView(const TransformContext& context, int index, ViewPlan* plan) const override;
  FloatRule float_rule() const override { return FloatRule::kTable; }

 private:
  std::array<PixelTable, kPixelFloats> tables_;  // by the floats that are normalised
};

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilToRawTensor(const ConfigNode& entry, const BuildContext& context);
absl::StatusOr<std::unique_ptr<Transform>> MakeImgToTensor(const ConfigNode& entry, const BuildContext& context);
absl::StatusOr<std::unique_ptr<Transform>> MakeToTensor(const ConfigNode& entry, const BuildContext& context);
absl::StatusOr<std::unique_ptr<Transform>> MakeNormalize(const ConfigNode& entry, const BuildContext& context);
std::unique_ptr<Options> MakeToTensorOptions();
std::unique_ptr<Options> MakeNormalizeOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_TO_TENSOR_H_
