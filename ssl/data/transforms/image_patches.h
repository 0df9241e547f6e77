// SPDX-License-Identifier: Apache-2.0
//
// Jigsaw's patches (https://arxiv.org/abs/1603.09246, section 4): an image is divided into side x side square cells of
// height / side pixels, and from each a patch that is `jitter` pixels smaller is cut at a random place.
#ifndef SSL_DATA_TRANSFORMS_IMAGE_PATCHES_H_
#define SSL_DATA_TRANSFORMS_IMAGE_PATCHES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/base/random.h"
#include "ssl/config/node.h"
#include "ssl/data/image/crop_box.h"

namespace ssl {

// The root of num_patches, which must be a square number; an error names the key of that name.
absl::StatusOr<int> PatchesPerSide(const ConfigNode& entry, int64_t num_patches);

// Sets `boxes` to the patches of such an image, cell by cell, down the columns, which is VISSL's order. InvalidArgument
// when it is too small or narrower than high.
absl::Status DrawPatchBoxes(int height, int width, int side, int jitter, CounterRandom& random,
                            std::vector<CropBox>* boxes);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_IMAGE_PATCHES_H_
