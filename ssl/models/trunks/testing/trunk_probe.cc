// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/testing/trunk_probe.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>

#include "gtest/gtest.h"
#include "ssl/core/generator_scope.h"

namespace ssl {

at::Tensor WaveImages(int64_t batch, int64_t height, int64_t width, int64_t channels) {
  return at::sin(at::arange(batch * channels * height * width, at::kFloat) * 0.11)
      .view({batch, channels, height, width})
      .contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor FindTensor(const Trunk& trunk, const std::string& name) {
  for (const ModelTensor& entry : trunk.Tensors()) {
    if (entry.name == name) return entry.value;
  }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

TrainedOnce TrainOnce(Trunk& trunk) {
  SeedForBatch(1, 0, 2, 3);
  trunk.SetTraining(true);
  TrainedOnce outcome = {trunk.Forward(WaveImages(4, 32, 32)), {}};
  (outcome.output.pow(2) + outcome.output.pow(3)).sum().backward();
  for (const ModelTensor& entry : trunk.Tensors()) {
    outcome.left.push_back(entry.role == TensorRole::kBuffer ? entry.value : entry.value.grad());
  }
  return outcome;
}

}  // namespace ssl
