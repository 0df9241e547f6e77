// SPDX-License-Identifier: Apache-2.0
//
// A part of a model on the stand-in device beside the same on the CPU: what a step and an evaluation leave is equal,
// lies on the device, and nothing passed between host and device meanwhile.
#ifndef SSL_TESTING_STANDIN_COMPARISON_H_
#define SSL_TESTING_STANDIN_COMPARISON_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "ssl/io/safetensors.h"
#include "ssl/models/model_tensor.h"

namespace ssl {

constexpr double kBitwise = 0.0;

// The device's tensors lie there, and are those of the CPU, by name. tolerance: share of a tensor's largest value by
// which others may differ, where the CPU has kernels of its own.
void ExpectSameOnStandin(const std::vector<NamedTensor>& found, const std::vector<NamedTensor>& expected,
                         double tolerance);

// A trunk or a head.
struct ModelPart {
  ModelTensors tensors;
  std::function<void(bool)> set_training;
  std::function<std::vector<at::Tensor>(const at::Tensor& input)> forward;
};

// on_cpu, on_standin: two of the same weights, on the CPU; the second one moves. Both train one step over all of
// `inputs`, whose gradients are compared where they ask for one, and evaluate each. After StandinDevice::Install.
void ExpectSamePasses(const ModelPart& on_cpu, const ModelPart& on_standin, const std::vector<at::Tensor>& inputs,
                      double tolerance);

}  // namespace ssl

#endif  // SSL_TESTING_STANDIN_COMPARISON_H_
