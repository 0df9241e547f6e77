// SPDX-License-Identifier: Apache-2.0
//
// VISSL has two ways to ask for sharded optimizer state: `use_zero: True` beside the optimizer's own settings, and what
// VISSL makes of that, `name: zero` with those settings in `base_optimizer`. Here the first is what a run has, so that
// a run may go on with it and without.
#ifndef SSL_OPTIM_ZERO_RESOLVER_H_
#define SSL_OPTIM_ZERO_RESOLVER_H_

#include "absl/status/status.h"
#include "ssl/config/node.h"

namespace ssl {

// Turns `name: zero` of config.OPTIMIZER into `use_zero: True` with the settings of `base_optimizer`, whose place is
// null then. InvalidArgument (file:line) when one of the two is there without the other, or the base has no name.
absl::Status ResolveZero(ConfigNode* config);

}  // namespace ssl

#endif  // SSL_OPTIM_ZERO_RESOLVER_H_
