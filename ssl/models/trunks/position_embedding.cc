// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/position_embedding.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/upsample_bicubic2d.h>

namespace ssl {

at::Tensor InterpolatePositions(const at::Tensor& embedding, int64_t others, PatchGrid grid, PatchGrid target) {
  if (grid.height == target.height && grid.width == target.width) return embedding;
  const at::Tensor map = embedding.narrow(1, others, grid.size()).unflatten(1, {grid.height, grid.width});
  const at::Tensor resized =
      at::upsample_bicubic2d(map.permute({0, 3, 1, 2}), {target.height, target.width}, /*align_corners=*/false,
                             static_cast<double>(target.height) / static_cast<double>(grid.height),
                             static_cast<double>(target.width) / static_cast<double>(grid.width));
  const at::Tensor places = resized.flatten(2).transpose(1, 2);
  return others == 0 ? places : at::cat({embedding.narrow(1, 0, others), places}, 1);
}

}  // namespace ssl
