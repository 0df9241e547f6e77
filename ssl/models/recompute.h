// SPDX-License-Identifier: Apache-2.0
//
// Activation checkpointing (arXiv 1604.06174): a part of a network that keeps its input alone in the forward pass, and
// runs a second time in backward to have what its gradients need.
//
// The second pass is the first once more: the same random numbers, the same autocast, no second move of running
// statistics (NormMode::kRecompute), and of statistics that ranks share those of the first pass, so that it
// communicates with nobody and ranks may recompute different parts. Loss and gradients in float32 are bitwise those of
// a plain run. Under autocast they differ in rounding: a weight that several passes use has its gradients added in
// float32, not in the short format.
//
// Parameters are inputs of one autograd node, so that the gradient of each is added to it once per backward pass, when
// all forward passes are through: a reducer that waits for that moment (a post hook of the AccumulateGrad node) sees
// what it sees without recomputation. A hook of the parameter's tensor runs in each second pass, too.
#ifndef SSL_MODELS_RECOMPUTE_H_
#define SSL_MODELS_RECOMPUTE_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "ssl/models/norm_mode.h"

namespace ssl {

// A function of one tensor. It lives until backward has run or the graph is dropped.
struct Recomputable {
  // The same outcome for the same input each time, in the modes kTraining and kRecompute. It changes neither its input
  // nor its parameters.
  std::function<at::Tensor(const at::Tensor& input, NormMode mode)> run;
  // All that `run` reads and that may need a gradient.
  std::vector<at::Tensor> parameters;
  // Called in backward when the gradients are there and the second pass is dropped; may be empty.
  std::function<void()> after_gradients = nullptr;
};

// part.run(input, kTraining). Without gradients (c10::GradMode) just that. Gradients of gradients are not supported.
at::Tensor RunAndRecompute(const Recomputable& part, const at::Tensor& input);

}  // namespace ssl

#endif  // SSL_MODELS_RECOMPUTE_H_
