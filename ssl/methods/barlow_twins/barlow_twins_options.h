// SPDX-License-Identifier: Apache-2.0
//
// Keys of config.LOSS.barlow_twins_loss, with VISSL's names and defaults.
#ifndef SSL_METHODS_BARLOW_TWINS_BARLOW_TWINS_OPTIONS_H_
#define SSL_METHODS_BARLOW_TWINS_BARLOW_TWINS_OPTIONS_H_

#include <cstdint>

#include "ssl/config/fields.h"

namespace ssl {

struct BarlowTwinsOptions : public Options {
  double lambda = 0.0051;
  double scale_loss = 0.024;
  int64_t embedding_dim = 8192;

  void VisitFields(FieldVisitor& visitor) override;
};

}  // namespace ssl

#endif  // SSL_METHODS_BARLOW_TWINS_BARLOW_TWINS_OPTIONS_H_
