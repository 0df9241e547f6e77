// SPDX-License-Identifier: Apache-2.0
//
// Adam (Kingma and Ba 2015, arXiv:1412.6980), and AdamW with its decoupled weight decay (Loshchilov and Hutter 2019,
// arXiv:1711.05101), in torch's form, for learning rate lr and weight decay d; t counts a parameter's own updates:
//
//   Adam: g = grad + d p      AdamW: p -= lr d p, g = grad
//   a = b1 a + (1 - b1) g;  s = b2 s + (1 - b2) g^2
//   p -= lr / (1 - b1^t) a / (sqrt(s) / sqrt(1 - b2^t) + epsilon)        amsgrad: the largest s so far in place of s
//
// One fused operation per group. State: `exp_avg/<name>`, `exp_avg_sq/<name>`, `step/<name>` and, with amsgrad,
// `max_exp_avg_sq/<name>`. Used by one thread. Pinned by tests/golden (optim, ops adam and adamw).
#ifndef SSL_OPTIM_ADAM_H_
#define SSL_OPTIM_ADAM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/optimizer.h"
#include "ssl/core/registries.h"

namespace ssl {

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool amsgrad = false;
};

// InvalidArgument for a beta outside [0, 1).
absl::StatusOr<std::unique_ptr<Optimizer>> MakeAdam(const AdamOptions& options);
absl::StatusOr<std::unique_ptr<Optimizer>> MakeAdamW(const AdamOptions& options);

// params: the OPTIMIZER node.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeAdamFromConfig(const ConfigNode& params, const BuildContext& context);
absl::StatusOr<std::unique_ptr<Optimizer>> MakeAdamWFromConfig(const ConfigNode& params, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_OPTIM_ADAM_H_
