// SPDX-License-Identifier: Apache-2.0
//
// A tensor that belongs to a model, with the name under which checkpoints keep it.
#ifndef SSL_MODELS_MODEL_TENSOR_H_
#define SSL_MODELS_MODEL_TENSOR_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace ssl {

enum class TensorRole {
  kWeight,  // trainable
  kNorm,    // trainable, weight or bias of a normalisation layer
  kBuffer,  // not trainable: running statistics, counters
};

struct ModelTensor {
  // Relative to its owner: "layer1.0.bn1.running_mean".
  std::string name;
  // The live tensor: copies of the handle share its storage.
  at::Tensor value;
  TensorRole role = TensorRole::kWeight;
};

using ModelTensors = std::vector<ModelTensor>;

}  // namespace ssl

#endif  // SSL_MODELS_MODEL_TENSOR_H_
