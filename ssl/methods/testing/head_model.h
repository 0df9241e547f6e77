// SPDX-License-Identifier: Apache-2.0
//
// A model for tests of methods that read embeddings: its outputs are its inputs, and its state says that it has a head
// of kDim outputs.
#ifndef SSL_METHODS_TESTING_HEAD_MODEL_H_
#define SSL_METHODS_TESTING_HEAD_MODEL_H_

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>

#include <cstdint>
#include <vector>

#include "ssl/core/model.h"

namespace ssl {

inline constexpr int64_t kDim = 3;

// [rows, kDim]: different values without a pattern.
inline at::Tensor Wave(int64_t rows, double phase) {
  return at::sin(at::arange(rows * kDim, at::kFloat).mul_(0.9).add_(phase)).view({rows, kDim});
}

class HeadModel : public Model {
 public:
  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override { return views; }
  std::vector<at::Tensor> Features(const at::Tensor&, const std::vector<FeatureRequest>&) override { return {}; }
  std::vector<NamedParameter> Parameters() override { return {}; }
  void SetTraining(bool) override {}
  void VisitState(StateVisitor& visitor) override { visitor.Tensor("heads.0.clf.0.weight", weight_); }

 private:
  at::Tensor weight_ = at::zeros({kDim, 5});
};

}  // namespace ssl

#endif  // SSL_METHODS_TESTING_HEAD_MODEL_H_
