// SPDX-License-Identifier: Apache-2.0
//
// The images of a batch for a device that makes the views itself, in memory that is pinned for it and grows to what the
// largest batch needs; what a huge image has left goes when many small batches have followed. An image is there once
// for all its views, without the rows that no view reads.
//
// Rows are packed in blocks of kBlockRows: threads may write rows of different blocks at the same time, those of one
// block in ascending order from its first on. Where the bytes lie does not depend on the threads.
#ifndef SSL_DATA_LOADER_IMAGE_PACK_H_
#define SSL_DATA_LOADER_IMAGE_PACK_H_

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ssl/core/packed_images.h"
#include "ssl/data/image/image.h"
#include "ssl/data/loader/batch_layout.h"
#include "ssl/data/loader/buffer_use.h"
#include "ssl/kernels/view_plan.h"

namespace ssl {

class ImagePack {
 public:
  static constexpr int64_t kBlockRows = 16;

  // Of the host's memory, where all images are as large as the first.
  static int64_t BytesOfImages(const BatchLayout& layout);

  // layout: of one input. Allocates. May throw LibTorch exceptions, as Write and Finish.
  explicit ImagePack(const BatchLayout& layout);
  ImagePack(const ImagePack&) = delete;
  ImagePack& operator=(const ImagePack&) = delete;

  // plans: one for each view, which begin with the first byte of `image`. Internal when they make other views than the
  // layout's.
  absl::Status Write(const Image& image, absl::Span<const ViewPlan> plans, int64_t row);

  // The first `rows` rows, all of which are written, are a batch: for one thread. The batch is images() until the next
  // Write.
  void Finish(int64_t rows);
  const PackedImages& images() const { return images_; }

 private:
  struct Block {
    at::Tensor memory;
    int64_t used = 0;
    BufferUse use;
  };
  // Empties it, and lets its memory go when that is much too large.
  void Clear(Block* block);
  // Behind what `block` holds; moves it where it has no room.
  uint8_t* Add(int64_t bytes, Block* block) const;
  // Of a batch of `rows` rows; begins: where each view of row 0 begins in the result, and what lies between rows.
  struct Place {
    int64_t begin = 0;
    int64_t step = 0;
  };
  std::vector<Place> Places(int64_t rows);

  const BatchLayout layout_;
  std::vector<Block> blocks_;
  std::vector<ViewPlan> plans_;  // by row and view; they count from the block's first byte
  at::Tensor plan_memory_;       // of a full batch
  PackedImages images_;
  // Memory that blocks have let go is still that of the last batch; it is free from the next one on, and given to the
  // system with the one after, when no copy reads it any more.
  std::atomic<bool> lets_go_ = false;
  bool is_free_ = false;
};

}  // namespace ssl

#endif  // SSL_DATA_LOADER_IMAGE_PACK_H_
