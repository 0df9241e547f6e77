// SPDX-License-Identifier: Apache-2.0
//
// Linear classification of fixed features: softmax regression by SGD with Nesterov momentum and a cosine schedule, for
// many learning rates at once. The rates share every matrix product: a batch [B, D] meets one matrix [D, rates *
// classes]. The gradient is the closed form, probabilities minus one-hot labels; nothing is recorded for autograd.
//
// A share of the training samples is held out and chooses the rate, so that the test set is looked at once. The
// classifier that is tested is then trained anew with that rate on all training samples. All randomness follows from
// the seed; weights start at zero.
#ifndef SSL_METERS_LINEAR_PROBE_H_
#define SSL_METERS_LINEAR_PROBE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/base/stop_token.h"

namespace ssl {

struct LinearProbeOptions {
  std::vector<double> learning_rates = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0};
  int64_t num_epochs = 20;
  int64_t batch_size = 256;
  double momentum = 0.9;
  double weight_decay = 0.0;  // of weights, not of biases
  bool normalize = true;      // every feature to mean 0 and variance 1 over the samples that are trained on
  double held_out_fraction = 0.1;
  int64_t seed = 0;
  // Called with the number of epochs done, of num_epochs to choose the rate and num_epochs with the chosen one.
  std::function<void(int64_t)> on_progress = nullptr;
};

struct LinearProbeRate {
  double learning_rate = 0.0;
  double held_out_top1 = 0.0;  // fraction in [0, 1]
  bool diverged = false;       // weights are not finite; never chosen
};

struct LinearProbeResult {
  std::vector<LinearProbeRate> rates;  // in the order of the options
  size_t best = 0;                     // the first of those with the highest held out top-1
  double top1 = 0.0;                   // of the tested classifier; fractions in [0, 1]
  double top5 = 0.0;
};

// train: [N, D], test: [M, D] float; labels: [N] and [M] int64, from 0. InvalidArgument when shapes do not fit or fewer
// than 2 samples are given; Internal when all rates diverged, or the chosen one on all samples; Cancelled when a stop
// is requested. May throw LibTorch exceptions.
absl::StatusOr<LinearProbeResult> TrainLinearProbe(const at::Tensor& train, const at::Tensor& train_labels,
                                                   const at::Tensor& test, const at::Tensor& test_labels,
                                                   const LinearProbeOptions& options, const StopToken& stop);

}  // namespace ssl

#endif  // SSL_METERS_LINEAR_PROBE_H_
