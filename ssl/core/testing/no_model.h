// SPDX-License-Identifier: Apache-2.0
//
// A model for tests whose StepContext has to have one.
#ifndef SSL_CORE_TESTING_NO_MODEL_H_
#define SSL_CORE_TESTING_NO_MODEL_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "ssl/core/model.h"

namespace ssl {

// Computes nothing and has no parameters.
class NoModel : public Model {
 public:
  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>&) override { return {}; }
  std::vector<at::Tensor> Features(const at::Tensor&, const std::vector<FeatureRequest>&) override { return {}; }
  std::vector<NamedParameter> Parameters() override { return {}; }
  void SetTraining(bool) override {}
};

}  // namespace ssl

#endif  // SSL_CORE_TESTING_NO_MODEL_H_
