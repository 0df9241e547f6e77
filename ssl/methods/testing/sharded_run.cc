// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/testing/sharded_run.h"

#include <ATen/ops/equal.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/safetensors.h"
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

std::map<std::string, at::Tensor> Saved(const std::string& directory, int64_t step,
                                        const std::vector<std::string>& files) {
  std::map<std::string, at::Tensor> tensors;
  for (const std::string& file : files) {
    const auto read = ReadSafetensors(absl::StrCat(directory, "/checkpoints/step_", step, "/", file));
    EXPECT_OK(read.status());
    for (const NamedTensor& entry : read->tensors) tensors[absl::StrCat(file, ":", entry.name)] = entry.tensor;
  }
  return tensors;
}

void ExpectEqual(const std::map<std::string, at::Tensor>& actual, const std::map<std::string, at::Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_EQ(actual.count(name), 1u) << name;
    EXPECT_TRUE(at::equal(actual.at(name), tensor)) << name;
  }
}

}  // namespace ssl
