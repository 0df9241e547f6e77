// SPDX-License-Identifier: Apache-2.0
//
// Automatic scaling of the learning rate with the batch size (Goyal et al. 2017, arXiv:1706.02677; VISSL's
// auto_lr_scaling). It rewrites the schedule's values in the configuration, before anything is built.
//
// With B = DATA.TRAIN.BATCHSIZE_PER_REPLICA, W = DISTRIBUTED.NUM_NODES * DISTRIBUTED.NUM_PROC_PER_NODE and
// f = B W / base_lr_batch_size (its square root for scaling_type sqrt), scaled = base_value * f becomes
//   constant.value, linear.end_value, inverse_sqrt.start_value, step_with_fixed_gamma.base_value,
//   cosine.start_value and cosine_warm_restart.start_value (end_value keeps its ratio to start_value),
//   multistep.values and step.values (the first; the others keep the ratio of the first two).
// A composite is scaled part by part; its linear warm-up then starts at base_value * B * NUM_PROC_PER_NODE /
// base_lr_batch_size, the batch of one node, and on a single node a warm-up that would not fall is dropped (VISSL's
// rule). A composite of one remaining part becomes that part. Applying it twice changes nothing, so a resolved
// configuration can be run again. Keys of DISTRIBUTED that are missing count as 1 (in VISSL, NUM_PROC_PER_NODE as 8).
//
// Kept as VISSL has them: with scaling_type sqrt a warm-up may fall, because its start follows the linear rule; on one
// node a composite of three and more parts that loses its warm-up keeps its lengths, which no longer fit.
#ifndef SSL_OPTIM_LR_SCALING_H_
#define SSL_OPTIM_LR_SCALING_H_

#include "absl/status/status.h"
#include "ssl/config/node.h"

namespace ssl {

// config: the tree under "config". Rewrites OPTIMIZER.param_schedulers.lr, and .lr_head when
// head_optimizer_params.use_different_lr is true, where auto_lr_scaling.auto_scale is true; otherwise lr_head becomes a
// copy of lr. InvalidArgument names the schedule that cannot be scaled.
absl::Status ResolveLearningRateScaling(ConfigNode* config);

}  // namespace ssl

#endif  // SSL_OPTIM_LR_SCALING_H_
