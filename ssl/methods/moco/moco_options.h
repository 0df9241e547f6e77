// SPDX-License-Identifier: Apache-2.0
//
// Keys of config.LOSS.moco_loss, with VISSL's names and defaults.
#ifndef SSL_METHODS_MOCO_MOCO_OPTIONS_H_
#define SSL_METHODS_MOCO_MOCO_OPTIONS_H_

#include <cstdint>

#include "ssl/config/fields.h"

namespace ssl {

struct MocoOptions : public Options {
  int64_t embedding_dim = 128;
  int64_t queue_size = 65536;
  double momentum = 0.999;
  double temperature = 0.2;

  void VisitFields(FieldVisitor& visitor) override;
};

}  // namespace ssl

#endif  // SSL_METHODS_MOCO_MOCO_OPTIONS_H_
