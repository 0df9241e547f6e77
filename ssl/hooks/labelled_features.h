// SPDX-License-Identifier: Apache-2.0
//
// The features of a data set with their classes, over all ranks: what an evaluation during training looks at.
#ifndef SSL_HOOKS_LABELLED_FEATURES_H_
#define SSL_HOOKS_LABELLED_FEATURES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/batch_source.h"
#include "ssl/data/replaced_images.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

struct LabelledSource {
  std::unique_ptr<BatchSource> batches;
  // What tells of the images of `batches` that could not be read, and lives as long; null: nobody does.
  const ReplacedImages* images = nullptr;
};

struct LabelledFeatures {
  // [N, D] float, in the order of the data set, each sample once, without those whose image could not be read: what
  // stands in for it is no sample of its class.
  at::Tensor features;
  at::Tensor labels;       // [N] int64
  int64_t unreadable = 0;  // samples that are left out
};

// images: [B, C, H, W]. Returns [B, D]. May throw LibTorch exceptions.
using ComputeFeatures = std::function<at::Tensor(const at::Tensor& images)>;

// Reads one batch: InvalidArgument, which `what` begins ("config.DATA.TRAIN"), when it has several views, or anything
// else than one class for each image.
absl::Status CheckLabelledImages(BatchSource& source, const std::string& what);

// [N] positions in `indices`, [M] int64, of the first of each index, in ascending order of the index: what is left of
// all ranks' samples, of which some are repeated so that all ranks have equally many.
at::Tensor FirstOfEach(const at::Tensor& indices);

// Runs epoch 0 of `source`, of which each rank gives its share. Nullopt on all ranks once `stop` of one of them asks;
// null: nobody stops it. DataLoss when none of the images can be read. Collective.
absl::StatusOr<std::optional<LabelledFeatures>> CollectLabelledFeatures(const LabelledSource& source,
                                                                        const std::string& what,
                                                                        const ComputeFeatures& compute,
                                                                        const StopToken* stop,
                                                                        Communicator& communicator);

}  // namespace ssl

#endif  // SSL_HOOKS_LABELLED_FEATURES_H_
