// SPDX-License-Identifier: Apache-2.0
//
// A whole training run in a second: a small ResNet learns to give the two large crops of an image, which is computed,
// the same embedding. There are three crops of two sizes, batch norm, augmentations and momentum. For tests that a hook
// leaves training as it is.
//
//   ASSERT_OK_AND_ASSIGN(const TinyRunResult plain, TrainTinyRun("{}"));
//   ASSERT_OK_AND_ASSIGN(const TinyRunResult watched, TrainTinyRun("HOOKS: {EVAL: {ONLINE_EVALUATION: True}}"));
//   EXPECT_EQ(watched.state, plain.state);
#ifndef SSL_HOOKS_TESTING_TINY_RUN_H_
#define SSL_HOOKS_TESTING_TINY_RUN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/core/metrics.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"

namespace ssl {

// Data, hooks, meters, models, optimizers, and the method "views_loss".
Registries TinyRunRegistries();

// 2 epochs of 5 updates in batches of 8, without a run directory, below the YAML `overrides` of the tree under
// "config". options: as for Session::Create.
absl::StatusOr<std::unique_ptr<Session>> OpenTinyRun(const std::string& overrides, SessionOptions options = {});

struct TinyRunResult {
  std::string directory;
  // The last checkpoint: bytes by file name, of the model, the optimizer and the state of rank 0.
  std::map<std::string, std::string> state;
  std::vector<MetricReport> reports;

  // Of a name, in the order of the reports that have it.
  std::vector<double> Values(const std::string& name) const;
  // Of all reports.
  std::set<std::string> ImageNames() const;
  std::set<std::string> HistogramNames() const;
};

// Trains to the end in a directory of its own.
absl::StatusOr<TinyRunResult> TrainTinyRun(const std::string& overrides);

}  // namespace ssl

#endif  // SSL_HOOKS_TESTING_TINY_RUN_H_
