// SPDX-License-Identifier: Apache-2.0
//
// DINO's rule for weight decay (Caron et al. 2021, arXiv:2104.14294; VISSL's "dino"): none for biases and for
// parameters with "norm" in their name, one group each. param_schedulers.weight_decay is its schedule. Parameters that
// do not require gradients are left out. Pinned by tests/golden (param_groups).
#ifndef SSL_OPTIM_DINO_GROUPER_H_
#define SSL_OPTIM_DINO_GROUPER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/parameter_grouper.h"
#include "ssl/core/registries.h"

namespace ssl {

// params: the OPTIMIZER node.
absl::StatusOr<std::unique_ptr<ParameterGrouper>> MakeDinoGrouperFromConfig(const ConfigNode& params,
                                                                            const BuildContext& context);

}  // namespace ssl

#endif  // SSL_OPTIM_DINO_GROUPER_H_
