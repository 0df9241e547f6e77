// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/collators/multicrop_mixup_collator.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/collators/draw_beta.h"
#include "ssl/data/collators/view_rules.h"

namespace ssl {
namespace {

constexpr double kAlpha = 0.2;

class MulticropMixupCollator : public Collator {
 public:
  absl::Status Check(const Sample& first) const override { return absl::OkStatus(); }
  bool mixes_samples() const override { return true; }
  absl::Status CheckRows(int64_t rows) const override { return CheckEvenRows("multicrop_mixup_collator", rows); }

  absl::Status Collate(const CollateContext& context, BatchRows* batch) const override {
    CounterRandom random = context.Random(*batch, /*row=*/0, /*view=*/0);
    const double share = DrawBeta(kAlpha, random);
    batch->rows /= 2;
    // Rows are written at or before the place from which they are read.
    for (const BatchRows::View& view : batch->views) {
      for (int64_t row = 0; row < batch->rows; ++row) Blend(view, row, share);
    }
    const int64_t label_size = std::max<int64_t>(batch->label_columns, 1);
    for (int64_t row = 1; row < batch->rows; ++row) {
      batch->indices[row] = batch->indices[2 * row];
      if (batch->labels == nullptr) continue;
      const int64_t* labels = batch->labels + 2 * row * label_size;
      std::copy(labels, labels + label_size, batch->labels + row * label_size);
    }
    return absl::OkStatus();
  }

 private:
  static void Blend(const BatchRows::View& view, int64_t row, double share) {
    const auto of_first = static_cast<float>(share);
    const auto of_second = static_cast<float>(1.0 - share);
    const float* first = view.row(2 * row);
    const float* second = view.row(2 * row + 1);
    float* blended = view.row(row);
    for (int64_t i = 0; i < view.row_size(); ++i) blended[i] = first[i] * of_first + second[i] * of_second;
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Collator>> MakeMulticropMixupCollator(const ConfigNode& params,
                                                                           absl::string_view path) {
  SSL_RETURN_IF_ERROR(CheckNoParameters(params, path));
  return std::make_unique<MulticropMixupCollator>();
}

}  // namespace ssl
