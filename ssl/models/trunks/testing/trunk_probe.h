// SPDX-License-Identifier: Apache-2.0
//
// What tests of trunks look at.
#ifndef SSL_MODELS_TRUNKS_TESTING_TRUNK_PROBE_H_
#define SSL_MODELS_TRUNKS_TESTING_TRUNK_PROBE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ssl/models/trunk.h"

namespace ssl {

// [batch, channels, height, width], channels-last: no two images alike.
at::Tensor WaveImages(int64_t batch, int64_t height, int64_t width, int64_t channels = 3);

// The tensor of that name; a failure of the test, and an undefined one, where there is none.
at::Tensor FindTensor(const Trunk& trunk, const std::string& name);

struct TrainedOnce {
  at::Tensor output;
  std::vector<at::Tensor> left;  // gradients and running statistics
};

// One pass of 4 images of 32x32 pixels forward and backward, with the random numbers of one batch.
TrainedOnce TrainOnce(Trunk& trunk);

}  // namespace ssl

#endif  // SSL_MODELS_TRUNKS_TESTING_TRUNK_PROBE_H_
