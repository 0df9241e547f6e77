// SPDX-License-Identifier: Apache-2.0
//
// Layer-wise adaptive rate clipping (You et al. 2017, arXiv:1708.03888) around another optimizer, as apex has it. For
// each parameter p with gradient g, learning rate lr and weight decay d:
//
//   a = trust_coefficient |p| / (|g| + d |p| + eps);  with clip a = min(a / lr, 1)
//   g = a (g + d p)
//
// and the inner optimizer updates with g and without weight decay. A parameter or gradient that is zero is left as it
// is: no rate and no decay. Norms and rates stay on the device. Step changes the gradients in place. State: the inner
// optimizer's. Used by one thread. Pinned by tests/golden (optim, op sgd_larc).
#ifndef SSL_OPTIM_LARC_H_
#define SSL_OPTIM_LARC_H_

#include <memory>

#include "ssl/core/optimizer.h"

namespace ssl {

struct LarcOptions {
  bool clip = false;
  double epsilon = 1e-8;
  double trust_coefficient = 0.001;
};

std::unique_ptr<Optimizer> MakeLarc(const LarcOptions& options, std::unique_ptr<Optimizer> inner);

}  // namespace ssl

#endif  // SSL_OPTIM_LARC_H_
