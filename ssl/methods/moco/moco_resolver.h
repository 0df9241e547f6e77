// SPDX-License-Identifier: Apache-2.0
//
// Contradictions between settings of MoCo, found before anything is built.
#ifndef SSL_METHODS_MOCO_MOCO_RESOLVER_H_
#define SSL_METHODS_MOCO_MOCO_RESOLVER_H_

#include "absl/status/status.h"
#include "ssl/config/node.h"

namespace ssl {

// config: the tree under "config"; nothing in it changes. Does nothing unless LOSS.name is moco_loss. InvalidArgument,
// naming the places, when LOSS.moco_loss.embedding_dim is not the width that the last head's `dims` end with, when
// queue_size is no multiple of the batch over all ranks of the configuration, or when the training transforms make another number of views than two and COLLATE_FUNCTION is not moco_collator, which checks
// the views themselves. Heads without `dims` are checked with the first batch.
absl::Status ResolveMoco(ConfigNode* config);

}  // namespace ssl

#endif  // SSL_METHODS_MOCO_MOCO_RESOLVER_H_
