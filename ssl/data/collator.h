// SPDX-License-Identifier: Apache-2.0
//
// How the samples of a batch become its tensors: COLLATE_FUNCTION. A collator says once, when the first sample is
// known, which views fit and what the targets are. The rows are then written by BatchBuffer straight from the samples,
// and a collator that mixes samples goes over them when all are written. Immutable; Collate is called by many threads
// at once, for different batches.
#ifndef SSL_DATA_COLLATOR_H_
#define SSL_DATA_COLLATOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ssl/base/random.h"
#include "ssl/data/sample.h"

namespace ssl {

// The targets of a batch of B rows, where the data have labels.
struct TargetLayout {
  enum class Kind {
    kLabels,   // of the samples, as they are: int64 [B] classes, or [B, classes]
    kRows,     // int64 [B, columns], written by Collate
    kWeights,  // float [B, columns], written by Collate
    kNone,     // none, although the samples may have labels
  };
  Kind kind = Kind::kLabels;
  int64_t columns = 0;
};

// A part of a batch that a model can be given, by the name that VISSL's collators have for it (INPUT_KEY_NAMES).
struct CollatedInput {
  std::string name = "data";
  int first_view = 0;
  int num_views = -1;  // -1: all from first_view on
  // One tensor [B * num_views, C, H, W], all views of sample 0 first; else a tensor for each view.
  bool joins_views = false;
};

// The memory of a batch whose rows are all written. Row r of a view is height * width * channels floats from row(r) on,
// in the order of an Image.
struct BatchRows {
  struct View {
    float* values = nullptr;
    int height = 0;
    int width = 0;
    int channels = 0;
    int interleaved = 1;  // views whose rows lie in turn in the same memory

    int64_t row_size() const { return static_cast<int64_t>(height) * width * channels; }
    float* row(int64_t r) const { return values + r * interleaved * row_size(); }
  };

  int64_t rows = 0;  // a collator that makes one of several lowers it
  std::vector<View> views;
  int64_t* indices = nullptr;  // [rows]
  int64_t* labels = nullptr;   // [rows], or [rows, label_columns]; null when there are none
  int64_t label_columns = 0;   // 0: labels are classes
  // What Collate writes for TargetLayout::Kind kRows or kWeights; else null.
  int64_t* target_rows = nullptr;
  float* target_weights = nullptr;
};

struct CollateContext {
  uint64_t seed = 0;
  uint64_t epoch = 0;

  // The stream of a row and view, named by the row's sample, so that it depends on neither threads nor a resume. No
  // transform has this operation (TransformContext).
  CounterRandom Random(const BatchRows& batch, int64_t row, int view) const {
    return CounterRandom(seed, epoch, static_cast<uint64_t>(batch.indices[row]), view, ~uint64_t{0});
  }
};

class Collator {
 public:
  virtual ~Collator() = default;

  // InvalidArgument when samples like `first` do not make such a batch; view v of the samples becomes view v of the
  // batch otherwise.
  virtual absl::Status Check(const Sample& first) const = 0;

  // The parts of a batch; together they are all views, each once.
  virtual std::vector<CollatedInput> inputs() const { return {CollatedInput()}; }

  // Of batches of samples like `first`.
  virtual TargetLayout Targets(const Sample& first) const { return {}; }

  // Whether the rows of a batch hold more than one sample each: no use where each sample counts by itself.
  virtual bool mixes_samples() const { return false; }

  // InvalidArgument when `rows` samples make no batch.
  virtual absl::Status CheckRows(int64_t rows) const { return absl::OkStatus(); }

  // Changes the written rows of a batch. InvalidArgument names the sample whose label does not fit.
  virtual absl::Status Collate(const CollateContext& context, BatchRows* batch) const { return absl::OkStatus(); }
};

}  // namespace ssl

#endif  // SSL_DATA_COLLATOR_H_
