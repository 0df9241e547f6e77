// SPDX-License-Identifier: Apache-2.0
//
// Settings of SwAV that follow from others: the head gives embedding_dim and num_prototypes, the multi-crop transform
// num_crops; the queue is rounded down to whole batches of all ranks. VISSL's configuration files carry stale values
// there, so what follows replaces what was written.
#ifndef SSL_METHODS_SWAV_SWAV_RESOLVER_H_
#define SSL_METHODS_SWAV_SWAV_RESOLVER_H_

#include "absl/status/status.h"
#include "ssl/config/node.h"

namespace ssl {

// config: the tree under "config". Does nothing unless LOSS.name is swav_loss. InvalidArgument, naming file and line,
// when there is not exactly one swav_head, when crops_for_assign names a crop that does not exist, or when the collator
// of the train transforms does not keep crops apart.
absl::Status ResolveSwav(ConfigNode* config);

}  // namespace ssl

#endif  // SSL_METHODS_SWAV_SWAV_RESOLVER_H_
