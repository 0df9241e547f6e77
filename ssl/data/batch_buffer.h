// SPDX-License-Identifier: Apache-2.0
//
// The memory of one batch, allocated once and filled again and again: the collator's place. Writing a sample applies
// its pixel table and mirroring on the way, so 8-bit pixels become floats exactly once.
//
// Several threads may write different rows at the same time; Finish and the batch belong to one thread.
#ifndef SSL_DATA_BATCH_BUFFER_H_
#define SSL_DATA_BATCH_BUFFER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/core/batch.h"
#include "ssl/data/sample.h"

namespace ssl {

struct ViewShape {
  int height = 0;
  int width = 0;
};

// What a batch looks like; the same for all batches of a run.
struct BatchLayout {
  int64_t batch_size = 0;
  int channels = 3;  // of the tensors; a grey picture is replicated into 3
  bool has_labels = false;
  std::vector<ViewShape> views;
};

// The layout that samples like `first` need, its batch_size, channels and has_labels given. collate_function:
//   multicrop_collator: view v of the batch holds crop v of every sample, for any number of crops;
//   default_collate: the same for samples of a single picture.
// InvalidArgument when the sample does not fit: no ToTensor, several views for default_collate, wrong channels.
absl::StatusOr<BatchLayout> LayoutFor(absl::string_view collate_function, const Sample& first, BatchLayout layout);

class BatchBuffer {
 public:
  // Allocates. May throw LibTorch exceptions.
  explicit BatchBuffer(const BatchLayout& layout);
  BatchBuffer(const BatchBuffer&) = delete;
  BatchBuffer& operator=(const BatchBuffer&) = delete;

  // Writes `sample` as row `row` in [0, batch_size). InvalidArgument when its views differ from the layout.
  absl::Status Write(const Sample& sample, int64_t row);

  // The batch of the first `rows` rows; valid until the next call of Write or Finish.
  const Batch& Finish(int64_t rows);

 private:
  BatchLayout layout_;
  Batch full_;
  Batch partial_;  // narrowed views of full_
  // Where the tensors of full_ lie, so that workers never touch a tensor.
  std::vector<float*> views_;
  int64_t* targets_ = nullptr;
  int64_t* indices_ = nullptr;
};

}  // namespace ssl

#endif  // SSL_DATA_BATCH_BUFFER_H_
