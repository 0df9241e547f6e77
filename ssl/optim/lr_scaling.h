// SPDX-License-Identifier: Apache-2.0
//
// Automatic scaling of the learning rate with the batch size (Goyal et al. 2017, arXiv:1706.02677; VISSL's
// auto_lr_scaling). A Resolver: it rewrites the schedule's values in the configuration, before anything is built.
//
// With B = DATA.TRAIN.BATCHSIZE_PER_REPLICA, W = DISTRIBUTED.NUM_NODES * DISTRIBUTED.NUM_PROC_PER_NODE and
// f = B W / base_lr_batch_size (its square root for scaling_type sqrt), scaled = base_value * f becomes
//   constant.value, linear.end_value, cosine.start_value (end_value keeps its ratio to start_value),
//   multistep.values and step.values (the first; the others keep the ratio of the first two).
// A composite is scaled part by part; its linear warm-up then starts at base_value * B * NUM_PROC_PER_NODE /
// base_lr_batch_size, the batch of one node, and on a single node a warm-up that would not fall is dropped (VISSL's
// rule). A composite of one remaining part becomes that part. Applying it twice changes nothing, so a resolved
// configuration can be run again. Keys of DISTRIBUTED that are missing count as 1.
#ifndef SSL_OPTIM_LR_SCALING_H_
#define SSL_OPTIM_LR_SCALING_H_

#include "absl/status/status.h"
#include "ssl/config/node.h"

namespace ssl {

// config: the tree under "config". Rewrites OPTIMIZER.param_schedulers.lr, and .lr_head when it is used, where
// auto_lr_scaling.auto_scale is true. InvalidArgument names the schedule that cannot be scaled.
absl::Status ResolveLearningRateScaling(ConfigNode* config);

}  // namespace ssl

#endif  // SSL_OPTIM_LR_SCALING_H_
