// SPDX-License-Identifier: Apache-2.0
//
// The memory of one batch, allocated once and filled again and again. Writing a sample applies its pixel table and
// mirroring on the way, so 8-bit pixels become floats exactly once; or mirroring alone, where that is left to the
// device that computes with the batch (BatchLayout::keeps_pixels).
//
// Several threads may write different rows at the same time; Collate is for one of them, when all have finished. Finish
// and the batch belong to one thread.
#ifndef SSL_DATA_LOADER_BATCH_BUFFER_H_
#define SSL_DATA_LOADER_BATCH_BUFFER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/core/batch.h"
#include "ssl/data/collator.h"
#include "ssl/data/loader/batch_layout.h"
#include "ssl/data/sample.h"

namespace ssl {

// The layout that samples like `first` need: adds the views and the columns of labels to `layout`, whose other members
// are given. View v of the batch holds view v of every sample, unless a collator joins views (CollatedInput).
// InvalidArgument when the sample does not fit: no ToTensor, wrong channels.
absl::StatusOr<BatchLayout> LayoutFor(const Sample& first, BatchLayout layout);

// Whether the views of such a layout may stay 8-bit: the table of each is a normalisation, and one for all views that
// share a tensor.
bool CanKeepPixels(const BatchLayout& layout);

// That a buffer for such a layout takes for views and inputs, rounded up where it is pinned.
int64_t BytesOfImages(const BatchLayout& layout);

class BatchBuffer {
 public:
  // Allocates. May throw LibTorch exceptions.
  explicit BatchBuffer(const BatchLayout& layout);
  BatchBuffer(const BatchBuffer&) = delete;
  BatchBuffer& operator=(const BatchBuffer&) = delete;

  // Writes `sample` as row `row` in [0, batch_size). InvalidArgument when its views or labels differ from the layout.
  // Where the layout plans views, those of the sample are not looked at.
  absl::Status Write(const Sample& sample, int64_t row);

  // Lets `collator` change the first `rows` rows, all of which are written. Returns how many rows the batch has then.
  absl::StatusOr<int64_t> Collate(const Collator& collator, const CollateContext& context, int64_t rows);

  // The batch of the first `rows` rows; valid until the next call of Write, Collate or Finish.
  const Batch& Finish(int64_t rows);

 private:
  // The tensors of an input, into which its views are written, and what is left to do with them.
  struct Input {
    std::vector<at::Tensor> tensors;
    std::vector<PixelNormalization> normalizations;  // of each; none where they are floats
  };
  void AllocateInputs();
  Input AllocateInput(const CollatedInput& input);
  void AllocateTargets();
  absl::Status WriteViews(const Sample& sample, int64_t row);
  absl::Status WriteView(const Sample& sample, int v, int64_t row);
  absl::Status WriteLabels(const Sample& sample, int64_t row);

  BatchLayout layout_;
  Batch full_;
  Batch partial_;                   // narrowed views of full_
  std::vector<at::Tensor> unused_;  // of inputs that nobody asks for: their views are written all the same
  // Where the tensors of full_ lie, so that workers never touch a tensor.
  BatchRows memory_;
  std::vector<uint8_t*> pixels_;  // of views that stay 8-bit, in place of memory_.views[v].values
  std::vector<int64_t> labels_;   // memory_.labels, where the targets are written by a collator
};

}  // namespace ssl

#endif  // SSL_DATA_LOADER_BATCH_BUFFER_H_
