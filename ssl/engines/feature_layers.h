// SPDX-License-Identifier: Apache-2.0
//
// Which features of a network an engine looks at, and how they are computed.
#ifndef SSL_ENGINES_FEATURE_LAYERS_H_
#define SSL_ENGINES_FEATURE_LAYERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/autocast.h"
#include "ssl/core/model.h"
#include "ssl/engines/feature_extraction.h"

namespace ssl {

// "res4:2" -> stage res4, pooled to 2x2; "res5avg" -> that stage as it is.
absl::StatusOr<std::vector<FeatureRequest>> ParseFeatureRequests(const std::vector<std::string>& texts);

// The names of the stages; the second, third ... of a name gets "_1", "_2" as in VISSL's files.
std::vector<std::string> LayerNames(const std::vector<FeatureRequest>& requests);

struct FeatureLayers {
  std::vector<std::string> names;  // one for each tensor that `compute` gives
  FeatureFunction compute;
};

// The features of `requests`; when there are none, those that the model is configured to give
// (LINEAR_EVAL_FEAT_POOL_OPS_MAP); without these, "heads": the first output of the heads, [B, everything else].
// The model outlives the function, which runs it in the mode that it is in.
FeatureLayers ChooseFeatureLayers(Model& model, const std::vector<FeatureRequest>& requests, Autocast autocast);

// One layer, "a+b": all of them flattened, each scaled to unit length, side by side. A single layer is only flattened.
FeatureLayers JoinLayers(FeatureLayers layers);

// [N, D]: what JoinLayers computes, of tensors.
at::Tensor JoinFeatures(const std::vector<at::Tensor>& features);

// One layer, "pixels", [B, D]: the pictures in [0, 1] as they are in the files. `transforms` is the list that made the
// batches; its Normalize is undone. A grey picture that the loader repeated for three channels counts once.
absl::StatusOr<FeatureLayers> PixelLayers(const ConfigNode& transforms);

}  // namespace ssl

#endif  // SSL_ENGINES_FEATURE_LAYERS_H_
