// SPDX-License-Identifier: Apache-2.0
//
// Keys of config.LOSS.moco_loss, with VISSL's names and defaults.
#ifndef SSL_METHODS_MOCO_MOCO_OPTIONS_H_
#define SSL_METHODS_MOCO_MOCO_OPTIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ssl/config/fields.h"

namespace ssl {

struct MocoOptions : public Options {
  int64_t embedding_dim = 128;
  int64_t queue_size = 65536;
  double momentum = 0.999;
  double temperature = 0.2;

  void VisitFields(FieldVisitor& visitor) override;
};

// InvalidArgument, without a place, unless the queue holds whole batches of all ranks.
absl::Status CheckQueueSize(int64_t queue_size, int64_t batch_size, int64_t ranks);

}  // namespace ssl

#endif  // SSL_METHODS_MOCO_MOCO_OPTIONS_H_
