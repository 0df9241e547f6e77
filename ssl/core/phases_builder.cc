// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/phases_builder.h"

namespace ssl {

std::vector<Phase> PhasesBuilder::Build() const {
  if (test_only) return std::vector<Phase>(num_epochs, Phase{false});
  std::vector<Phase> phases;
  for (int64_t done = 1; done <= num_epochs; ++done) {
    phases.push_back({true});
    if (test_model && tests.IsDue(done, num_epochs)) phases.push_back({false});
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
