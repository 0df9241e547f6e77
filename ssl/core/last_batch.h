// SPDX-License-Identifier: Apache-2.0
//
// Whether a model can be trained on the last batch of an epoch, which has what is left over of the data.
#ifndef SSL_CORE_LAST_BATCH_H_
#define SSL_CORE_LAST_BATCH_H_

#include "absl/status/status.h"
#include "ssl/config/node.h"
#include "ssl/core/self_supervision_task.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

// One image left over is too little for batch norm where a layer has one pixel of it. Where `config`, the tree under
// "config", leaves one over for each rank, makes the forward pass of that batch, and puts the model back as it was.
// InvalidArgument, with the numbers, the key and the way out, when the pass fails. Not where parameters are shards: the
// step finds it there. Before the first phase starts. Collective.
absl::Status TryLastBatch(const ConfigNode& config, SelfSupervisionTask& task, Communicator& communicator);

}  // namespace ssl

#endif  // SSL_CORE_LAST_BATCH_H_
