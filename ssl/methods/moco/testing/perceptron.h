// SPDX-License-Identifier: Apache-2.0
//
// A small network to try methods on: linear, batch norm (if wanted), ReLU, linear, on views that are rows of numbers;
// more widths make more hidden layers. Tensors are named by position: "0.weight", "1.running_mean", "3.bias". Values
// follow from the seed.
//
//   Perceptron model({6, 10, 5}, /*use_batch_norm=*/true, /*seed=*/1);
//   at::Tensor embeddings = model.Forward({rows})[0];  // [B, 6] -> [B, 5]
#ifndef SSL_METHODS_MOCO_TESTING_PERCEPTRON_H_
#define SSL_METHODS_MOCO_TESTING_PERCEPTRON_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ssl/core/model.h"
#include "ssl/models/layers.h"
#include "ssl/models/model_tensor.h"

namespace ssl {

class Perceptron : public Model {
 public:
  // dims: widths of input, hidden layers and output; at least two.
  Perceptron(const std::vector<int64_t>& dims, bool use_batch_norm, int64_t seed);

  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override;
  std::vector<at::Tensor> Features(const at::Tensor&, const std::vector<FeatureRequest>&) override { return {}; }
  std::vector<NamedParameter> Parameters() override;
  void SetTraining(bool training) override { training_ = training; }
  void VisitState(StateVisitor& visitor) override;

  // The live tensor of that name; undefined when there is none.
  at::Tensor Get(const std::string& name) const;

 private:
  std::vector<LinearLayer> linear_;
  std::vector<BatchNormLayer> norms_;  // one after each hidden layer, or none
  bool training_ = true;
  ModelTensors tensors_;
};

}  // namespace ssl

#endif  // SSL_METHODS_MOCO_TESTING_PERCEPTRON_H_
