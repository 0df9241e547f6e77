// SPDX-License-Identifier: Apache-2.0
//
// Learned embeddings of places for images of other sizes than the one that they were made for.
#ifndef SSL_MODELS_TRUNKS_POSITION_EMBEDDING_H_
#define SSL_MODELS_TRUNKS_POSITION_EMBEDDING_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ssl {

// A grid of patches.
struct PatchGrid {
  int64_t height = 0;
  int64_t width = 0;

  int64_t size() const { return height * width; }
};

// embedding: [1, others + grid.size(), width]; `others`: tokens in front that have no place, such as the class token,
// whose embeddings stay. Returns [1, others + target.size(), width], interpolated bicubically as VISSL (DINO) does;
// for the grid itself the embedding. Differentiable.
at::Tensor InterpolatePositions(const at::Tensor& embedding, int64_t others, PatchGrid grid, PatchGrid target);

}  // namespace ssl

#endif  // SSL_MODELS_TRUNKS_POSITION_EMBEDDING_H_
