// SPDX-License-Identifier: Apache-2.0
//
// What normalisation layers do in a forward pass.
#ifndef SSL_MODELS_NORM_MODE_H_
#define SSL_MODELS_NORM_MODE_H_

namespace ssl {

enum class NormMode {
  kEvaluation,  // normalises by the running statistics
  kTraining,    // normalises by the batch's statistics, and moves the running ones
  kRecompute,   // a training pass for the second time: the same outputs, and the running statistics stay
};

inline NormMode NormModeFor(bool training) { return training ? NormMode::kTraining : NormMode::kEvaluation; }

}  // namespace ssl

#endif  // SSL_MODELS_NORM_MODE_H_
