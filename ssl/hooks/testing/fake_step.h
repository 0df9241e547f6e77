// SPDX-License-Identifier: Apache-2.0
//
// A training step without training: the parts of a StepContext, which a test sets and which record what a hook does
// to them.
//
//   FakeStep step;
//   step.state.iteration = 7;
//   EXPECT_OK(hook.OnStep(step.context));
//   EXPECT_THAT(step.saver.iterations, ElementsAre(7));
#ifndef SSL_HOOKS_TESTING_FAKE_STEP_H_
#define SSL_HOOKS_TESTING_FAKE_STEP_H_

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/metrics.h"
#include "ssl/core/model.h"
#include "ssl/core/optimizer.h"
#include "ssl/core/stateful.h"
#include "ssl/core/step_context.h"
#include "ssl/core/train_state.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

// Has parameters, one block, and nothing else.
class FakeModel : public Model {
 public:
  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override { return views; }
  std::vector<at::Tensor> Features(const at::Tensor&, const std::vector<FeatureRequest>&) override { return {}; }
  std::vector<NamedParameter> Parameters() override { return parameters; }
  void SetTraining(bool) override {}
  std::vector<std::string> block_names() const override { return blocks; }
  void SetRecomputePolicy(RecomputePolicy* new_policy) override { policy = new_policy; }
  void VisitState(StateVisitor& visitor) override {
    for (NamedParameter& parameter : parameters) visitor.Tensor(parameter.name, parameter.value);
  }

  std::vector<NamedParameter> parameters;
  std::vector<std::string> blocks = {"block"};
  RecomputePolicy* policy = nullptr;
};

// Has one group and never updates.
class FakeOptimizer : public Optimizer {
 public:
  FakeOptimizer() : groups_(1) {}

  absl::Status Initialize(std::vector<ParameterGroup> groups) override {
    groups_ = std::move(groups);
    return absl::OkStatus();
  }
  std::vector<ParameterGroup>& groups() override { return groups_; }
  void Step(const at::Tensor& found_inf) override {}

 private:
  std::vector<ParameterGroup> groups_;
};

// Notes at which iterations it was asked to save; each is saved once.
class RecordingSaver : public CheckpointSaver {
 public:
  explicit RecordingSaver(const TrainState& state) : state_(state) {}

  absl::Status Save() override {
    kept.insert(state_.iteration);
    return SaveState();
  }
  absl::Status Poll() override { return polled; }
  absl::Status Wait() override { return absl::OkStatus(); }
  absl::Status SaveAs(const std::string& name, bool replaceable) override {
    if (!replaceable) kept.insert(state_.iteration);
    const auto before = names.find(name);
    if (before != names.end() && kept.count(before->second) == 0) replaced.push_back(before->second);
    names[name] = state_.iteration;
    return SaveState();
  }
  absl::StatusOr<int64_t> Named(const std::string& name) override {
    const auto found = names.find(name);
    return found == names.end() ? -1 : found->second;
  }
  absl::StatusOr<bool> NameSaved(const std::string& name, int64_t iteration) override {
    const bool is_there = std::find(iterations.begin(), iterations.end(), iteration) != iterations.end();
    if (!is_there) names.erase(name);
    if (is_there) names[name] = iteration;
    return is_there;
  }

  std::map<std::string, int64_t> names;
  std::set<int64_t> kept;         // iterations asked for otherwise than as replaceable
  std::vector<int64_t> replaced;  // iterations that lost their name to a later save, and nothing else had asked for
  std::vector<int64_t> iterations;
  absl::Status result;
  absl::Status polled;

 private:
  absl::Status SaveState() {
    if (iterations.empty() || iterations.back() != state_.iteration) iterations.push_back(state_.iteration);
    return result;
  }

  const TrainState& state_;
};

// What a sink was given. Outlives the store that owns the sink.
struct SinkRecord {
  std::vector<MetricReport> reports;
  int flushes = 0;
  absl::Status result;  // of every call
};

class FakeStep {
 public:
  FakeStep();
  // On a rank of a larger world.
  explicit FakeStep(Communicator& communicator);

  TrainState state;
  FakeModel model;
  FakeOptimizer optimizer;
  StopToken stop;
  RecordingSaver saver{state};
  SinkRecord sink;
  MetricStore metrics;

 private:
  std::unique_ptr<Communicator> own_communicator_;

 public:
  // Last: refers to the members above. A training step of rank 0 with a loss of 1.
  StepContext context;
};

}  // namespace ssl

#endif  // SSL_HOOKS_TESTING_FAKE_STEP_H_
