// SPDX-License-Identifier: Apache-2.0
//
// One element of a data set on its way through the transforms: its views (images), label and index.
//
// A worker reuses one Sample for all its work: views keep their buffers when their number shrinks. Not thread-safe.
#ifndef SSL_DATA_SAMPLE_H_
#define SSL_DATA_SAMPLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "ssl/data/image/byte_buffer.h"
#include "ssl/data/image/crop_box.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/needed_region.h"
#include "ssl/data/image/pixel_table.h"
#include "ssl/data/read_fault.h"

namespace ssl {

// A part of a view that has floats of its own in the batch (RandomErasing).
struct ErasedBox {
  CropBox box;                // in coordinates of the image; height 0: there is none
  std::vector<float> values;  // of its pixels, row by row, 3 channels each; a batch of 1 channel takes the first
};

struct View {
  Image image;
  // The image is mirrored (left-right) when it is written into the batch.
  bool flipped = false;
  // How 8-bit values become floats: set by ToTensor, replaced by Normalize; null before. Owned by the transform.
  const PixelTable* table = nullptr;
  ErasedBox erased;
};

class Sample {
 public:
  int64_t index = 0;   // position in the data set
  int64_t label = -1;  // class; -1 when the data set has none
  // Of a data set with several labels an image: one value a class, 1, 0 or -1 (unknown). Lent by the data set.
  absl::Span<const int64_t> label_row;
  // Of a data set with several label files: the classes of the image, one from each file. Lent by the data set.
  absl::Span<const int64_t> label_list;
  // Not kNone: the image could not be read, and the view holds what takes its place.
  ReadFault fault = ReadFault::kNone;
  // What a data set's Get may leave the rest of the image out for; null: all of it is needed. Lent during Get.
  const NeededRegion* needed = nullptr;
  // Buffers of data sets for a file's path, its bytes, and its image before it is turned upright; without meaning
  // outside Get.
  std::string path_buffer;
  ByteBuffer file_buffer;
  Image image_buffer;

  // Makes `value` the sample's only label; -1: it has none.
  void SetLabel(int64_t value) {
    label = value;
    label_row = {};
    label_list = {};
  }

  int num_views() const { return num_views_; }
  View& view(int i) { return views_[i]; }
  const View& view(int i) const { return views_[i]; }

  // Sets the number of views. Those that there were keep what they are; of added ones nothing is known.
  void SetNumViews(int count) {
    if (count > static_cast<int>(views_.size())) views_.resize(count);
    num_views_ = count;
  }

  // The same, and makes each view plain (not flipped, no table, nothing erased). Images keep what they hold.
  void ResetViews(int count) {
    SetNumViews(count);
    for (int i = 0; i < count; ++i) {
      views_[i].flipped = false;
      views_[i].table = nullptr;
      views_[i].erased.box = {};
    }
  }

 private:
  int num_views_ = 0;
  std::vector<View> views_;  // the first num_views_ are in use
};

}  // namespace ssl

#endif  // SSL_DATA_SAMPLE_H_
