// SPDX-License-Identifier: Apache-2.0
//
// Cross entropy of class scores, as VISSL's cross_entropy_multiple_output_single_target computes it for each output.
//
//   loss = mean over samples b of  - sum_c t_b[c] log softmax(s_b / T)[c]
//
// t is one-hot for class numbers; label smoothing e makes it (1 - e) t + e / C. Pure; any thread.
#ifndef SSL_LOSSES_CROSS_ENTROPY_H_
#define SSL_LOSSES_CROSS_ENTROPY_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/status/statusor.h"

namespace ssl {

enum class LossReduction { kMean, kSum };

struct CrossEntropyOptions {
  // [C] float on the device of the output: factors of the classes, for class numbers only. Undefined: all 1. The mean
  // is then one over the factors of the samples' classes.
  at::Tensor weight = {};
  LossReduction reduction = LossReduction::kMean;
  int64_t ignore_index = -1;      // samples of this class number do not count
  bool normalize_output = false;  // scores of a sample to unit length first
  double temperature = 1.0;
  double label_smoothing = 0.0;
};

// output: [B, C] scores, floating. targets: [B] int64 class numbers, or [B, C] weights of the classes: floating, or
// integers, of which negative ones (unknown) count as 0. Returns a scalar with its graph, at least float32 also under
// autocast; NaN when every sample is ignored.
//
// InvalidArgument when the shapes do not fit, or when a class number is neither ignore_index nor in [0, C). Class
// numbers are looked at on the CPU only: for other devices that would wait for the device in every step, and there
// LibTorch's kernel stops the program. May throw LibTorch exceptions.
absl::StatusOr<at::Tensor> CrossEntropy(const at::Tensor& output, const at::Tensor& targets,
                                        const CrossEntropyOptions& options);

}  // namespace ssl

#endif  // SSL_LOSSES_CROSS_ENTROPY_H_
