// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/core/core_options.h"
#include "ssl/core/phases_builder.h"
#include "tests/golden/golden.h"

namespace ssl::golden {
namespace {

void CheckPhases(const Case& golden) {
  RunOptions options;
  options.test_every_num_epoch = golden.Count("TEST_EVERY_NUM_EPOCH");
  const PhasesBuilder builder{golden.Count("num_epochs"), TestCadence(options), golden.Flag("TEST_MODEL"),
                              golden.Flag("TEST_ONLY")};
  std::vector<double> phases;
  for (const Phase& phase : builder.Build()) phases.push_back(phase.train ? 1.0 : 0.0);
  EXPECT_EQ(phases, ListOf(golden.steps[0].Expected("phases")));

  std::vector<std::string> splits;
  for (const ConfigNode& split : golden.steps[0].Expected("available_splits").value.items()) {
    splits.push_back(split.text());
  }
  EXPECT_EQ(builder.AvailableSplits(), splits);
}

TEST(PhasesGolden, ListsAreThoseOfVissl) { RunCategory("phases", {{"phases", &CheckPhases}}); }

}  // namespace
}  // namespace ssl::golden
