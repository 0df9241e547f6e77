// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/testing/sharded_run.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/training_runs.h"

namespace ssl {

absl::Status Train(const Run& of, std::vector<Losses>* losses) {
  TrainingRun run;
  run.ranks = of.ranks;
  run.config = {of.method, of.changes};
  run.directory = of.directory;
  run.last_iteration = of.steps;
  run.add_parts = of.add_parts;
  SSL_ASSIGN_OR_RETURN(const std::vector<RankTrace> traces, Train(run));
  losses->clear();
  for (const RankTrace& trace : traces) losses->push_back(trace.losses);
  return absl::OkStatus();
}

std::vector<Losses> TrainedOn(const Run& run) {
  std::vector<Losses> losses(static_cast<size_t>(run.ranks));
  EXPECT_OK(Train(run, &losses));
  return losses;
}

void ExpectSameLosses(const std::vector<Losses>& actual, const std::vector<Losses>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    ASSERT_EQ(actual[rank].size(), expected[rank].size());
    for (size_t step = 0; step < expected[rank].size(); ++step) {
      EXPECT_NEAR(actual[rank][step], expected[rank][step], 1e-6 * expected[rank][step])
          << "rank " << rank << ", step " << step;
    }
  }
}

}  // namespace ssl
