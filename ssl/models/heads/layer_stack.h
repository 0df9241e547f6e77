// SPDX-License-Identifier: Apache-2.0
//
// Linear layers with normalisation, activation and dropout between them: what MLP heads share. Layers are numbered
// as in torch.nn.Sequential, activations counted ("3.weight").
#ifndef SSL_MODELS_HEADS_LAYER_STACK_H_
#define SSL_MODELS_HEADS_LAYER_STACK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ssl/models/layers.h"

namespace ssl {

class Communicator;

// features: [N, width], or maps, which are flattened. Any other width throws c10::ValueError, which names `argument`
// ("mlp.dims[0]") as its source.
at::Tensor HeadRows(const at::Tensor& features, int64_t width, const char* argument);

class LayerStack {
 public:
  void AddLinear(LinearLayer layer);
  void AddBatchNorm(BatchNormLayer layer);
  void AddRelu();
  void AddGelu();
  // Zeroes half of the values in training mode.
  void AddDropout();

  // Of all layers added so far; see ssl/models/head.h.
  void SynchronizeBatchNorm(const std::shared_ptr<Communicator>& group);

  // input: [N, in]. The input is not changed.
  at::Tensor Forward(const at::Tensor& input, bool training) const;

  // Appends "<prefix><index>.weight" and so on.
  void List(const std::string& prefix, ModelTensors* tensors) const;

 private:
  enum class Kind { kLinear, kBatchNorm, kRelu, kGelu, kDropout };
  struct Layer {
    Kind kind = Kind::kRelu;
    LinearLayer linear;
    BatchNormLayer norm;
  };

  std::vector<Layer> layers_;
};

}  // namespace ssl

#endif  // SSL_MODELS_HEADS_LAYER_STACK_H_
