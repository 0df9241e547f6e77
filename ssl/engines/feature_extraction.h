// SPDX-License-Identifier: Apache-2.0
//
// Features of a whole data set, in memory.
#ifndef SSL_ENGINES_FEATURE_EXTRACTION_H_
#define SSL_ENGINES_FEATURE_EXTRACTION_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/model.h"

namespace ssl {

struct FeatureSet {
  at::Tensor features;  // [N, D] float, in the order of the source
  at::Tensor labels;    // [N] int64
};

struct FeatureExtractionOptions {
  // Stages of the trunk; several are each scaled to unit length and joined.
  std::vector<FeatureRequest> requests;
  bool use_autocast = false;
  std::string what;  // names the work in progress lines
};

// "res4:2" -> stage res4, pooled to 2x2; "res5avg" -> that stage as it is.
absl::StatusOr<std::vector<FeatureRequest>> ParseFeatureRequests(const std::vector<std::string>& texts);

// Runs epoch 0 of `source` through `model` in evaluation mode; with a null model the features are the pixels. Needs
// labels and one view. Cancelled when a stop is requested.
absl::StatusOr<FeatureSet> ExtractFeatures(Model* model, BatchSource& source, const FeatureExtractionOptions& options,
                                           const StopToken& stop);

}  // namespace ssl

#endif  // SSL_ENGINES_FEATURE_EXTRACTION_H_
