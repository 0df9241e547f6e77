// SPDX-License-Identifier: Apache-2.0
//
// The network as the training loop sees it: views in, outputs out, parameters with names.
//
// Tensor code inside may throw LibTorch exceptions; the loop turns them into a Status. Not thread-safe.
#ifndef SSL_CORE_MODEL_H_
#define SSL_CORE_MODEL_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ssl/core/recompute_policy.h"
#include "ssl/core/stateful.h"

namespace ssl {

class Communicator;
class ParameterShards;

struct NamedParameter {
  // As in the checkpoint: "trunk.layer1.0.conv1.weight", "heads.0.prototypes0.weight".
  std::string name;
  at::Tensor value;
  // True for weights of normalisation layers, which are usually exempt from weight decay.
  bool is_norm = false;
};

// How a feature map [B, C, H, W] is pooled: torch's pooling modules, with their arguments.
struct FeaturePool {
  enum class Kind { kIdentity, kAdaptiveAverage, kAdaptiveMax, kAverage, kMax };

  Kind kind = Kind::kIdentity;
  std::vector<int64_t> size;     // [height, width] of the result (adaptive), or of the kernel
  std::vector<int64_t> stride;   // kAverage and kMax; empty: the kernel's size
  std::vector<int64_t> padding;  // kAverage and kMax; empty: none
};

// A feature to extract: a stage of the trunk, pooled. Features that the trunk pools already ("res5avg") are [B, C]
// whatever the pool says.
struct FeatureRequest {
  std::string name;  // VISSL's names: "conv1", "res2" ... "res5", "res5avg"
  FeaturePool pool;
  bool flatten = true;  // [B, everything else]
};

// A map of the trunk and what follows from it.
struct MapAndOutputs {
  at::Tensor map;                   // [B, C, h, w]
  std::vector<at::Tensor> outputs;  // as of Forward
};

class Model : public Stateful {
 public:
  // views: V tensors [B, C, H_v, W_v]. Views of one resolution go through the trunk in one batch; the outputs are
  // view-major: rows v*B ... (v+1)*B-1 belong to view v. A SwAV head returns [embeddings, scores_0, scores_1, ...].
  virtual std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) = 0;

  // inputs: tensors by name (Batch::named_inputs), each for the heads that MODEL.MULTI_INPUT_HEAD_MAPPING gives it.
  // The default throws c10::NotImplementedError.
  virtual std::vector<at::Tensor> ForwardNamed(const std::map<std::string, at::Tensor>& inputs);

  // images: [B, C, H, W]. Returns one [B, ...] tensor per request, of the trunk. Runs in the current mode, without
  // gradients. A name that is not among feature_names() throws c10::ValueError, which names the nearest one.
  virtual std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<FeatureRequest>& requests) = 0;

  // images: [B, C, H, W]. Forward of one view with the map of the stage `stage` on the way, and the graph between the
  // two also where the trunk does not train: what an output owes to the places of an image. In the current mode; errors
  // as of Features. The default throws c10::NotImplementedError.
  virtual MapAndOutputs ForwardWithMap(const at::Tensor& images, const std::string& stage);

  // The trunk's stages, in the order of the network.
  virtual std::vector<std::string> feature_names() const { return {}; }

  // What MODEL.FEATURE_EVAL_SETTINGS.LINEAR_EVAL_FEAT_POOL_OPS_MAP asks for; empty without it.
  virtual std::vector<FeatureRequest> configured_features() const { return {}; }

  // All trainable parameters, in a fixed order. The tensors are the live ones.
  virtual std::vector<NamedParameter> Parameters() = 0;

  // Training mode (batch statistics) or evaluation mode (running statistics).
  virtual void SetTraining(bool training) = 0;

  // The blocks that every image goes through one after the other, by names that begin with the stage's
  // (feature_names): "conv1", "res2.0". Empty: the model is no such chain, and asks no policy.
  virtual std::vector<std::string> block_names() const { return {}; }

  // From now on, `policy` plans each forward pass that trains; null: as the configuration says. It outlives its use.
  virtual void SetRecomputePolicy(RecomputePolicy* policy) {}

  // Splits the trainable parameters, equal on all ranks, over the ranks of `communicator`, which outlives the model
  // (parameter_shards.h). Parameters() and the state then have this rank's shards, under the same names, and every rank
  // makes the same forward passes and backward of each. Once, before anything else holds the parameters. The default is
  // Unimplemented.
  virtual absl::Status ShardParameters(Communicator& communicator);

  // Null: parameters are whole on every rank.
  virtual ParameterShards* parameter_shards() { return nullptr; }
};

}  // namespace ssl

#endif  // SSL_CORE_MODEL_H_
