// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/random_vertical_flip.h"

#include <cstdint>
#include <utility>

#include "ssl/base/status_macros.h"
#include "ssl/data/image/vectorize.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct RandomVerticalFlipOptions : public Options {
  double p = 0.5;

  void VisitFields(FieldVisitor& visitor) override { visitor.Field("p", &p, Doc("Probability.").Between(0.0, 1.0)); }
};

// std::swap_ranges goes byte by byte: the rows might overlap for all that it knows.
SSL_VECTORIZE
void SwapRows(uint8_t* __restrict a, uint8_t* __restrict b, int64_t size) {
  for (int64_t i = 0; i < size; ++i) std::swap(a[i], b[i]);
}

void FlipRows(Image* image) {
  const int64_t row_size = static_cast<int64_t>(image->width()) * image->channels();
  uint8_t* pixels = image->MutablePixels();
  for (int64_t top = 0, bottom = image->height() - 1; top < bottom; ++top, --bottom) {
    SwapRows(pixels + top * row_size, pixels + bottom * row_size, row_size);
  }
}

}  // namespace

absl::Status RandomVerticalFlip::ApplyToView(const TransformContext& context, int index, View* view) const {
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  if (context.Random(index).Bernoulli(probability_)) FlipRows(&view->image);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeRandomVerticalFlip(const ConfigNode& entry,
                                                                  const BuildContext& context) {
  RandomVerticalFlipOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  return std::make_unique<RandomVerticalFlip>(options.p);
}

std::unique_ptr<Options> MakeRandomVerticalFlipOptions() { return std::make_unique<RandomVerticalFlipOptions>(); }

}  // namespace ssl
