// SPDX-License-Identifier: Apache-2.0
//
// Keys of config.LOSS.swav_loss, with VISSL's names and defaults.
#ifndef SSL_METHODS_SWAV_SWAV_OPTIONS_H_
#define SSL_METHODS_SWAV_SWAV_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "ssl/config/fields.h"

namespace ssl {

struct SwavQueueOptions : public Options {
  int64_t queue_length = 0;
  int64_t start_iter = 0;

  void VisitFields(FieldVisitor& visitor) override;
};

struct SwavOptions : public Options {
  int64_t embedding_dim = 128;
  double temperature = 0.1;
  bool use_double_precision = false;
  bool normalize_last_layer = true;
  int64_t num_iters = 3;
  double epsilon = 0.05;
  int64_t num_crops = 2;
  std::vector<int64_t> crops_for_assign = {0, 1};
  std::vector<int64_t> num_prototypes = {3000};
  int64_t temp_hard_assignment_iters = 0;
  double shk_powerlaw = 0.0;
  SwavQueueOptions queue;

  void VisitFields(FieldVisitor& visitor) override;
};

}  // namespace ssl

#endif  // SSL_METHODS_SWAV_SWAV_OPTIONS_H_
