// SPDX-License-Identifier: Apache-2.0
//
// Settings of SimCLR that VISSL infers from others. The method itself asks the communicator and the batch; a resolved
// configuration holds the same numbers as VISSL's. What follows replaces what was written.
#ifndef SSL_METHODS_SIMCLR_SIMCLR_RESOLVER_H_
#define SSL_METHODS_SIMCLR_SIMCLR_RESOLVER_H_

#include "absl/status/status.h"
#include "ssl/config/node.h"

namespace ssl {

// config: the tree under "config". Does nothing unless LOSS.name is simclr_info_nce_loss or
// multicrop_simclr_info_nce_loss. With B = DATA.TRAIN.BATCHSIZE_PER_REPLICA and W = DISTRIBUTED.NUM_NODES *
// NUM_PROC_PER_NODE (1 where missing), sets buffer_params.world_size to W and buffer_params.effective_batch_size to
// 2 * B * W, with crops to B * W. With crops also num_crops to the transforms' total_num_crops, and
// DATA.TRAIN.COLLATE_FUNCTION to multicrop_collator. InvalidArgument, naming file and line, for counts that are none.
absl::Status ResolveSimclr(ConfigNode* config);

}  // namespace ssl

#endif  // SSL_METHODS_SIMCLR_SIMCLR_RESOLVER_H_
