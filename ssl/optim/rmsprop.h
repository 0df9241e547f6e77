// SPDX-License-Identifier: Apache-2.0
//
// RMSprop (Hinton 2012; with momentum, Graves 2013, arXiv:1308.0850) with L2 weight decay, in torch's form, for
// learning rate lr, weight decay d, momentum m:
//
//   g = grad + d p;  s = alpha s + (1 - alpha) g^2
//   r = sqrt(s) + epsilon        centered: c = alpha c + (1 - alpha) g;  r = sqrt(s - c^2) + epsilon
//   v = m v + g / r;  p -= lr v
//
// Multi-tensor operations, which change the gradients in place; with a loss scale, Step reads whether they overflowed.
// State: `square_avg/<name>`, with momentum
// `momentum/<name>`, centered `grad_avg/<name>`. Used by one thread. Pinned by tests/golden (optim, op rmsprop).
#ifndef SSL_OPTIM_RMSPROP_H_
#define SSL_OPTIM_RMSPROP_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/optimizer.h"
#include "ssl/core/registries.h"

namespace ssl {

struct RmspropOptions {
  double alpha = 0.99;
  double epsilon = 1e-8;
  double momentum = 0.9;
  bool centered = false;
  std::string momentum_schedule = {};  // that sets the momentum (momentum_schedule.h); "": it stays
};

std::unique_ptr<Optimizer> MakeRmsprop(const RmspropOptions& options);

// params: the OPTIMIZER node.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeRmspropFromConfig(const ConfigNode& params, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_OPTIM_RMSPROP_H_
