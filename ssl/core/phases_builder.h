// SPDX-License-Identifier: Apache-2.0
//
// The sequence of train and test phases of a run, by VISSL's rules.
#ifndef SSL_CORE_PHASES_BUILDER_H_
#define SSL_CORE_PHASES_BUILDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ssl/core/cadence.h"

namespace ssl {

struct Phase {
  bool train = true;
};

// A test phase follows the train phases after which `tests` is due. Without test_model there are no test phases. With
// test_only there are num_epochs test phases and nothing else.
struct PhasesBuilder {
  int64_t num_epochs = 0;
  Cadence tests;
  bool test_model = true;
  bool test_only = false;

  std::vector<Phase> Build() const;

  // The splits that the run reads, in VISSL's order: TEST, TRAIN.
  std::vector<std::string> AvailableSplits() const;
};

}  // namespace ssl

#endif  // SSL_CORE_PHASES_BUILDER_H_
