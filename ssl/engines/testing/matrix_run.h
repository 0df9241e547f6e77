// SPDX-License-Identifier: Apache-2.0
//
// A run that engines evaluate: synthetic images of 8x8 pixels and four classes, and a network of one matrix.
#ifndef SSL_ENGINES_TESTING_MATRIX_RUN_H_
#define SSL_ENGINES_TESTING_MATRIX_RUN_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/node.h"
#include "ssl/core/model.h"
#include "ssl/core/registries.h"
#include "ssl/distributed/communicator.h"
#include "ssl/engines/engine.h"
#include "ssl/io/file_system.h"

namespace ssl {

// 8x8 images, their channels averaged, times a matrix [64, 4]. Stage "half" has the first two columns, "all" has all;
// the heads give all. A pooled stage is the mean of its columns.
class MatrixModel : public Model {
 public:
  // on_features: called at each call of Features.
  explicit MatrixModel(std::function<void()> on_features = nullptr);

  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override;
  std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<FeatureRequest>& requests) override;
  std::vector<std::string> feature_names() const override { return {"half", "all"}; }
  std::vector<NamedParameter> Parameters() override { return {{"trunk.weight", weight, false}}; }
  void SetTraining(bool training) override {}
  void VisitState(StateVisitor& visitor) override { visitor.Tensor("trunk.weight", weight); }

  at::Tensor weight;

 private:
  const std::function<void()> on_features_;
};

// 60 training images in 4 batches, 20 test images in 2. Figures are of the first 4 neighbours or 3 epochs.
class MatrixRun : public ::testing::Test {
 protected:
  void SetUp() override;

  // A checkpoint that records the configuration as it is now.
  void SaveCheckpoint(const at::Tensor& weight, int64_t iteration = 7);
  // All weights are `value`.
  void SaveCheckpoint(double value);
  void SaveRandomCheckpoint();

  void Set(const std::string& path, const std::string& yaml);

  // As a new process of the same command: nobody asks it to stop, and it has no results yet.
  void Restart();

  EngineContext Context();
  // progress: as the command gives it; null for none.
  absl::StatusOr<EngineReport> Run(const std::string& engine, RunProgress* progress = nullptr);
  // A number of the results; below 0 when there is none.
  double Result(const std::string& path) const;

  const std::string directory_;
  const std::unique_ptr<Communicator> communicator_;
  FileSystem* file_system_ = &PosixFileSystem();
  Registries registries_;
  ConfigNode config_;
  ConfigNode results_ = ConfigNode::Map();
  std::unique_ptr<StopToken> stop_ = std::make_unique<StopToken>();
  int feature_calls_ = 0;  // of all networks
  int stop_at_call_ = -1;  // a stop is requested in that call
  int fail_at_call_ = -1;  // that call throws

  MatrixRun();
};

}  // namespace ssl

#endif  // SSL_ENGINES_TESTING_MATRIX_RUN_H_
