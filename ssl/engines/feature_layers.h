// SPDX-License-Identifier: Apache-2.0
//
// Which features of a network an engine looks at, and how they are computed.
#ifndef SSL_ENGINES_FEATURE_LAYERS_H_
#define SSL_ENGINES_FEATURE_LAYERS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
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

// The name of a request for the first output of the heads, [B, everything else].
inline constexpr char kHeads[] = "heads";

// What an empty list of layers means: those that the model is configured to give (LINEAR_EVAL_FEAT_POOL_OPS_MAP);
// without them the last stage of the trunk, or, as in VISSL, the heads where MODEL.FEATURE_EVAL_SETTINGS.EVAL_MODE_ON
// says that an evaluation of theirs is configured. A model without stages has heads only.
std::vector<FeatureRequest> UsualFeatures(const Model& model, const ConfigNode& config);

// InvalidArgument, with the place, for one of `requests` that the model does not have: they are those that config.<key>
// lists, "NEIGHBORS.LAYERS", of the tree `config`.
absl::Status CheckFeatureNames(const Model& model, const std::vector<FeatureRequest>& requests, const std::string& key,
                               const ConfigNode& config);

// The features of `requests`, among them perhaps "heads". The model outlives the function, which runs it in the mode
// that it is in, on the device where it lies now; images and features are on the host.
FeatureLayers ChooseFeatureLayers(Model& model, std::vector<FeatureRequest> requests, Autocast autocast);

// One layer, "a+b": all of them flattened, each scaled to unit length, side by side. A single layer is only flattened.
FeatureLayers JoinLayers(FeatureLayers layers);

// [N, D]: what JoinLayers computes, of tensors.
at::Tensor JoinFeatures(const std::vector<at::Tensor>& features);

// One layer, "pixels", [B, C, h, w]: the images in [0, 1] as they are in the files, averaged down to at most 32 x 32,
// which is what such a baseline is usually given and bounds its memory. `transforms` is the list that made the batches;
// its Normalize is undone.
absl::StatusOr<FeatureLayers> PixelLayers(const ConfigNode& transforms);

// Takes two of the three channels out of the pixels of both sets where all images of both are grey, which the loader
// has repeated for three channels: a grey data set counts each pixel once. One image in colour keeps all of them.
void CountGreyPixelsOnce(FeatureSet* train, FeatureSet* test);

}  // namespace ssl

#endif  // SSL_ENGINES_FEATURE_LAYERS_H_
