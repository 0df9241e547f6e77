// SPDX-License-Identifier: Apache-2.0
//
// Stochastic gradient descent with momentum, Nesterov momentum (Sutskever et al. 2013) and L2 weight decay, in torch's
// form, for learning rate lr, weight decay d, momentum m:
//
//   g = grad + d p;  v = m v + g;  p -= lr (g + m v with Nesterov, else v; g without momentum)
//
// The momentum is the group's, which a schedule may set: v goes on through steps in which it is 0.
// One fused operation per group. State: `momentum/<parameter name>`, zeros before the first gradient. Used by one
// thread. Pinned by tests/golden (optim, op sgd).
#ifndef SSL_OPTIM_SGD_H_
#define SSL_OPTIM_SGD_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/optimizer.h"
#include "ssl/core/registries.h"

namespace ssl {

struct SgdOptions {
  double momentum = 0.9;
  bool nesterov = false;
  std::string momentum_schedule = {};  // that sets the momentum (momentum_schedule.h); "": it stays
};

// InvalidArgument for Nesterov momentum without momentum or a schedule of it.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeSgd(const SgdOptions& options);

// params: the OPTIMIZER node. With use_larc, the optimizer of larc.h around this one.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeSgdFromConfig(const ConfigNode& params, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_OPTIM_SGD_H_
