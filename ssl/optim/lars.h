// SPDX-License-Identifier: Apache-2.0
//
// Layer-wise adaptive rates (You et al. 2017, arXiv:1708.03888) in the form of Barlow Twins and VISSL. For each
// parameter p with gradient g, learning rate lr, weight decay d, momentum m:
//
//   u = g + d p;  u *= eta |p| / |u|, where both norms are above 0;  v = m v + u;  p -= lr v
//
// With exclude_bias_and_norm, parameters of one dimension keep u as it is. Norms stay on the device. Step changes the
// gradients in place. State: `momentum/<parameter name>`. Used by one thread. Pinned by tests/golden (optim, op lars).
#ifndef SSL_OPTIM_LARS_H_
#define SSL_OPTIM_LARS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/optimizer.h"
#include "ssl/core/registries.h"

namespace ssl {

struct LarsOptions {
  double momentum = 0.9;
  double eta = 0.001;
  bool exclude_bias_and_norm = false;
  std::string momentum_schedule = {};  // that sets the momentum (momentum_schedule.h); "": it stays
};

std::unique_ptr<Optimizer> MakeLars(const LarsOptions& options);

// params: the OPTIMIZER node.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeLarsFromConfig(const ConfigNode& params, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_OPTIM_LARS_H_
