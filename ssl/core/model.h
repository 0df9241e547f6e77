// SPDX-License-Identifier: Apache-2.0
//
// The network as the training loop sees it: views in, outputs out, parameters with names.
//
// Tensor code inside may throw LibTorch exceptions; the loop turns them into a Status. Not thread-safe.
#ifndef SSL_CORE_MODEL_H_
#define SSL_CORE_MODEL_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "ssl/core/stateful.h"

namespace ssl {

struct NamedParameter {
  // As in the checkpoint: "trunk.layer1.0.conv1.weight", "heads.0.prototypes0.weight".
  std::string name;
  at::Tensor value;
  // True for weights of normalisation layers, which are usually exempt from weight decay.
  bool is_norm = false;
};

// A feature to extract: a trunk stage, average-pooled to pool_size x pool_size (0: not pooled).
struct FeatureRequest {
  std::string name;  // VISSL's names: "conv1", "res2" ... "res5", "res5avg"
  int64_t pool_size = 0;
};

class Model : public Stateful {
 public:
  // views: V tensors [B, C, H_v, W_v]. Views of one resolution go through the trunk in one batch; the outputs are
  // view-major: rows v*B ... (v+1)*B-1 belong to view v. A SwAV head returns [embeddings, scores_0, scores_1, ...].
  virtual std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) = 0;

  // images: [B, C, H, W]. Returns one [B, ...] tensor per request. Runs in the current mode, without gradients.
  virtual std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<FeatureRequest>& requests) = 0;

  // All trainable parameters, in a fixed order. The tensors are the live ones.
  virtual std::vector<NamedParameter> Parameters() = 0;

  // Training mode (batch statistics) or evaluation mode (running statistics).
  virtual void SetTraining(bool training) = 0;
};

}  // namespace ssl

#endif  // SSL_CORE_MODEL_H_
