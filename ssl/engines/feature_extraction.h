// SPDX-License-Identifier: Apache-2.0
//
// Features of a whole data set: batch by batch for whoever writes them away, or collected in memory.
#ifndef SSL_ENGINES_FEATURE_EXTRACTION_H_
#define SSL_ENGINES_FEATURE_EXTRACTION_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/batch_source.h"
#include "ssl/data/read_fault.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

// From the images of a batch, [B, C, H, W], to one [B, ...] float tensor for each layer. May throw LibTorch
// exceptions.
using FeatureFunction = std::function<std::vector<at::Tensor>(const at::Tensor& images)>;

struct FeatureLayers {
  std::vector<std::string> names;  // one for each tensor that `compute` gives
  FeatureFunction compute;
  c10::Device device = c10::kCPU;  // that it computes on
};

struct FeatureBatch {
  std::vector<at::Tensor> features;  // per layer, [B, ...] float
  at::Tensor labels;                 // [B] int64, or [B, classes]; undefined when the data have none
  at::Tensor indices;                // [B] int64, positions in the data set
};

// Of a whole split, but for images that could not be read: in the order of the source, or of the data set where several
// ranks shared the work.
struct FeatureSet {
  std::vector<at::Tensor> features;  // per layer, [N, ...] float
  at::Tensor labels;                 // [N] int64, or [N, classes]
  at::Tensor indices;                // [N] int64
};

// Runs epoch 0 of `source`, which gives one view of each image, through `layers`, and hands each batch to `consume`.
// `what` names the work in progress lines and errors. Cancelled when a stop is requested between two batches;
// OutOfRange names the layer and the sample of the first feature that is not finite. LibTorch's exceptions become a
// Status, which says what to lower where memory of the layers' device is exhausted.
absl::Status ForEachFeatureBatch(BatchSource& source, const FeatureLayers& layers, const std::string& what,
                                 const StopToken& stop, absl::FunctionRef<absl::Status(const FeatureBatch&)> consume);

enum class LabelNeed {
  kRequired,  // InvalidArgument when there are none
  kOptional,  // undefined when there are none
};

// Takes the rows of `images`, by position in the data set, out of `set`; its labels may be undefined. DataLoss, which
// `what` begins, where no row would be left.
absl::Status DropRows(const std::map<int64_t, ReadFault>& images, const std::string& what, FeatureSet* set);

// All of them in memory, on every rank: each computes those of its share of the samples. An image that could not be
// read has no row: what stands in for it is no sample of its class. Aborted when it fails on another rank. Collective.
absl::StatusOr<FeatureSet> ExtractFeatures(BatchSource& source, const FeatureLayers& layers, const std::string& what,
                                           const StopToken& stop, Communicator& communicator,
                                           LabelNeed labels = LabelNeed::kRequired);

// Finds out on one image whether ExtractFeatures would run: the number of views, labels, the layers' names, shapes that
// do not fit. Leaves the source in the middle of epoch 0.
absl::Status TryFirstImage(BatchSource& source, const FeatureLayers& layers, const std::string& what,
                           LabelNeed labels = LabelNeed::kRequired);

}  // namespace ssl

#endif  // SSL_ENGINES_FEATURE_EXTRACTION_H_
