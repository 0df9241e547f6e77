// SPDX-License-Identifier: Apache-2.0
//
// ToTensor (torchvision): pixels become floats in [0, 1]. Normalize: (value - mean) / std per channel, after ToTensor;
// parameters mean and std, 1 or 3 numbers each. Both only note a table; the values are computed when a view is
// written into the batch.
#ifndef SSL_DATA_TRANSFORMS_TO_TENSOR_H_
#define SSL_DATA_TRANSFORMS_TO_TENSOR_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/image/pixel_table.h"
#include "ssl/data/transform.h"

namespace ssl {

class ToTensor : public ViewTransform {
 public:
  ToTensor() : table_(MakeToTensorTable()) {}

  absl::string_view name() const override { return "ToTensor"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;

 private:
  PixelTable table_;
};

class Normalize : public ViewTransform {
 public:
  Normalize(const std::vector<double>& mean, const std::vector<double>& std) : table_(MakeNormalizeTable(mean, std)) {}

  absl::string_view name() const override { return "Normalize"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;

 private:
  PixelTable table_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeToTensor(const ConfigNode& entry, const BuildContext& context);
absl::StatusOr<std::unique_ptr<Transform>> MakeNormalize(const ConfigNode& entry, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_TO_TENSOR_H_
