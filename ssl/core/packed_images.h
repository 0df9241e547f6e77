// SPDX-License-Identifier: Apache-2.0
//
// What the views of a batch are made of where a device makes them (DATA.TRAIN.AUGMENT_ON): decoded images, and a plan
// for each view.
#ifndef SSL_CORE_PACKED_IMAGES_H_
#define SSL_CORE_PACKED_IMAGES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "ssl/core/batch.h"

namespace ssl {

// On the host, in memory that is pinned for the device. Valid as long as the batch.
struct PackedImages {
  // Pixels of 8 bits, uint8 [n] each. One block behind the other they are the packed images in which plans count.
  std::vector<at::Tensor> blocks;
  // uint8: a ViewPlan (ssl/kernels/view_plan.h) for each view, whose work_begin belongs to who makes the views.
  at::Tensor plans;
  // [B, 3, H, W] of each tensor of the batch's views, which lie channels-last one behind the other in the result.
  std::vector<std::vector<int64_t>> sizes;
  PixelNormalization normalization;  // of all of them
};

}  // namespace ssl

#endif  // SSL_CORE_PACKED_IMAGES_H_
