// SPDX-License-Identifier: Apache-2.0
//
// Layer-wise learning rates for fine-tuning (Bao et al. 2021, arXiv:2106.08254; VISSL's "lr_decay"): a parameter at
// depth d of a trunk with L layers learns with decay^(L + 1 - d) of the learning rate, decay being
// OPTIMIZER.layer_wise_lr_decay.decay. MODEL.TRUNK.NAME says what a layer is:
//
//   vision_transformer  L blocks. 0: patch_embed, pos_embed, cls_token; i + 1: block i; L: the rest; L + 1: heads.
//                       No weight decay for biases and names with "norm", whatever the other keys say. So is
//                       vision_transformer_fsdp.
//   resnet              L = 4 stages. 0: the trunk's conv1 and bn1; i: layer<i>; 5: the rest. Weight decay for biases
//                       with regularize_bias, for weights of layers named bn<i> with regularize_bn; all others have it,
//                       also the normalisation of shortcuts and heads, as in VISSL.
//
// param_schedulers.weight_decay is the schedule of the weight decay. Groups are named "layer<d>_regularized" and
// "layer<d>_unregularized". Parameters that do not require gradients are left out. Pinned by tests/golden
// (param_groups).
#ifndef SSL_OPTIM_LAYER_DECAY_GROUPER_H_
#define SSL_OPTIM_LAYER_DECAY_GROUPER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/parameter_grouper.h"
#include "ssl/core/registries.h"

namespace ssl {

// params: the OPTIMIZER node. InvalidArgument for a trunk without such layers.
absl::StatusOr<std::unique_ptr<ParameterGrouper>> MakeLayerDecayGrouperFromConfig(const ConfigNode& params,
                                                                                  const BuildContext& context);

}  // namespace ssl

#endif  // SSL_OPTIM_LAYER_DECAY_GROUPER_H_
