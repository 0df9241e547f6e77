// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/image_patches.h"

#include "absl/strings/str_cat.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {

absl::StatusOr<int> PatchesPerSide(const ConfigNode& entry, int64_t num_patches) {
  int side = 1;
  while (side * side < num_patches) ++side;
  if (side * side == num_patches) return side;
  return absl::InvalidArgumentError(
      absl::StrCat(TransformKey(entry, "num_patches"), " is ", num_patches, ", expected a square number, such as 9"));
}

absl::Status DrawPatchBoxes(int height, int width, int side, int jitter, CounterRandom& random,
                            std::vector<CropBox>* boxes) {
  const int cell = height / side;
  if (cell <= jitter || width < cell * side) {
    return absl::InvalidArgumentError(absl::StrCat("image is ", width, " x ", height, ", expected at least ",
                                                   side * (jitter + 1), " pixels high, for ", side, " x ", side,
                                                   " patches with a jitter of ", jitter, ", and as wide as high"));
  }
  boxes->clear();
  for (int column = 0; column < side; ++column) {
    for (int row = 0; row < side; ++row) {
      const int left = column * cell + static_cast<int>(random.UniformInt(0, jitter - 1));
      const int top = row * cell + static_cast<int>(random.UniformInt(0, jitter - 1));
      boxes->push_back({top, left, cell - jitter, cell - jitter});
    }
  }
  return absl::OkStatus();
}

}  // namespace ssl
