// SPDX-License-Identifier: Apache-2.0
//
// Stages of a trunk as features: VISSL's map of stages and pools, and the pooling itself.
//
//   LINEAR_EVAL_FEAT_POOL_OPS_MAP: [["res4", ["AvgPool2d", [[8, 8], 3, 0]]], ["res5avg", ["Identity", []]]]
//
// Pools are torch's modules with their positional arguments, each a number or [height, width]: AdaptiveAvgPool2d and
// AdaptiveMaxPool2d (output size), AvgPool2d and MaxPool2d (kernel, stride, padding), Identity (none). Stateless.
#ifndef SSL_MODELS_FEATURE_POOL_H_
#define SSL_MODELS_FEATURE_POOL_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"
#include "ssl/core/model.h"

namespace ssl {

// entries: the map, in the order that the features shall have; a stage may stand in it several times. path: its key,
// for messages. stages: the names that are known. InvalidArgument names file:line, what stands there and what was
// expected.
absl::StatusOr<std::vector<FeatureRequest>> ReadFeaturePools(const ConfigNode& entries, absl::string_view path,
                                                             bool flatten, const std::vector<std::string>& stages);

// stage: [B, C, H, W], pooled and flattened as the request says; or [B, C], which stays as it is. Flattened features
// are in the order of torch: channels, rows, columns.
at::Tensor PoolFeature(const at::Tensor& stage, const FeatureRequest& request);

}  // namespace ssl

#endif  // SSL_MODELS_FEATURE_POOL_H_
