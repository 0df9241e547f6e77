// SPDX-License-Identifier: Apache-2.0
//
// Keys of config.LOSS.simclr_info_nce_loss and config.LOSS.multicrop_simclr_info_nce_loss, with VISSL's names and
// defaults.
#ifndef SSL_METHODS_SIMCLR_SIMCLR_OPTIONS_H_
#define SSL_METHODS_SIMCLR_SIMCLR_OPTIONS_H_

#include <cstdint>

#include "ssl/config/fields.h"

namespace ssl {

// buffer_params, named after VISSL's precomputed masks.
struct SimclrBufferOptions : public Options {
  int64_t world_size = 64;
  int64_t embedding_dim = 128;
  int64_t effective_batch_size = 4096;

  void VisitFields(FieldVisitor& visitor) override;
};

struct SimclrOptions : public Options {
  double temperature = 0.1;
  SimclrBufferOptions buffer_params;

  void VisitFields(FieldVisitor& visitor) override;
};

struct MulticropSimclrOptions : public SimclrOptions {
  int64_t num_crops = 2;

  void VisitFields(FieldVisitor& visitor) override;
};

}  // namespace ssl

#endif  // SSL_METHODS_SIMCLR_SIMCLR_OPTIONS_H_
