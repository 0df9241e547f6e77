// SPDX-License-Identifier: Apache-2.0
//
// A trunk that is a chain of stages, each a named feature, with an average over the last one's pixels at the end.
#ifndef SSL_MODELS_TRUNKS_STAGED_TRUNK_H_
#define SSL_MODELS_TRUNKS_STAGED_TRUNK_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <vector>

#include "ssl/models/trunk.h"

namespace ssl {

class StagedTrunk : public Trunk {
 public:
  at::Tensor Forward(const at::Tensor& images) override;
  std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<std::string>& names) override;
  std::vector<std::string> feature_names() const override { return names_; }
  void SetTraining(bool training) override { training_ = training; }

 protected:
  // stages: their names, in the order of the network. pooled: the name of the average; "flatten" is another.
  StagedTrunk(std::vector<std::string> stages, const std::string& pooled);

  // Stage `index` of `input`: the images, or what the stage before gave.
  virtual at::Tensor RunStage(size_t index, const at::Tensor& input) const = 0;

  bool training() const { return training_; }

 private:
  // The index among the names; the pooled ones come last.
  size_t IndexOf(const std::string& name) const;

  std::vector<std::string> names_;
  bool training_ = true;
};

}  // namespace ssl

#endif  // SSL_MODELS_TRUNKS_STAGED_TRUNK_H_
