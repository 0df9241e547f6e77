// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/phases_builder.h"

namespace ssl {

std::vector<Phase> PhasesBuilder::Build() const {
  if (test_only) return std::vector<Phase>(num_epochs, Phase{false});
  std::vector<Phase> phases;
  for (int64_t epoch = 0; epoch < num_epochs; ++epoch) {
    phases.push_back({true});
    const bool test_is_due = epoch % test_every_num_epoch == 0 || epoch == num_epochs - 1;
    if (test_model && test_is_due) phases.push_back({false});
  }
  return phases;
}

std::vector<std::string> PhasesBuilder::AvailableSplits() const {
  std::vector<std::string> splits;
  if (test_model) splits.push_back("TEST");
  if (!test_only) splits.push_back("TRAIN");
  return splits;
}

}  // namespace ssl
