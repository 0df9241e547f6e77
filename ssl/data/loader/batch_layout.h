// SPDX-License-Identifier: Apache-2.0
//
// What a batch looks like; the same for all batches of a run.
#ifndef SSL_DATA_LOADER_BATCH_LAYOUT_H_
#define SSL_DATA_LOADER_BATCH_LAYOUT_H_

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ssl/data/collator.h"
#include "ssl/data/image/pixel_table.h"

namespace ssl {

struct ViewShape {
  int height = 0;
  int width = 0;
};

struct BatchLayout {
  int64_t batch_size = 0;
  int channels = 3;  // of the tensors; a grey image is replicated into 3
  bool has_labels = false;
  std::vector<ViewShape> views = {};
  std::vector<CollatedInput> inputs = {CollatedInput()};  // that `views` make up
  // Of the names of `inputs`: one, whose tensors are the batch's views, or several, which are its named inputs.
  std::vector<std::string> input_keys = {CollatedInput().name};
  int64_t label_columns = 0;  // of the samples; 0: a class each
  TargetLayout targets = {};
  // By view, of the first sample. Owned by the transforms.
  std::vector<const PixelTable*> tables = {};
  // Views stay 8-bit, and Batch::normalizations has their tables, which are those of all samples: see CanKeepPixels.
  bool keeps_pixels = false;
  // Batches have no views: a device makes them of what an ImagePack holds.
  bool plans_views = false;
  // Of the first sample's image, as it was decoded, where a device may make the views.
  int64_t image_bytes = 0;
  // What the batches are copied to: their memory is pinned for it, but for indices, which stay on the host.
  c10::Device device = c10::kCPU;
};

}  // namespace ssl

#endif  // SSL_DATA_LOADER_BATCH_LAYOUT_H_
