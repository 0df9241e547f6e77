// SPDX-License-Identifier: Apache-2.0
//
// Runs SwavMethod on given outputs of a head: loss, gradients, queue and counters over several calls.
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"
#include "tests/golden/rank_cases.h"
#include "tests/golden/swav_case.h"

namespace ssl {
namespace {

// Prototype parameters of the right shape: the loss never reads them.
class GivenOutputsModel : public Model {
 public:
  GivenOutputsModel(const std::vector<int64_t>& num_prototypes, int64_t embedding_dim) {
    for (size_t head = 0; head < num_prototypes.size(); ++head) {
      parameters_.push_back({absl::StrCat("heads.0.prototypes", head, ".weight"),
                             at::zeros({num_prototypes[head], embedding_dim}), false});
    }
  }
  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>&) override { return {}; }
  std::vector<at::Tensor> Features(const at::Tensor&, const std::vector<FeatureRequest>&) override { return {}; }
  std::vector<NamedParameter> Parameters() override { return parameters_; }
  void SetTraining(bool) override {}

 private:
  std::vector<NamedParameter> parameters_;
};

// Names of inputs and outputs begin with `prefix`.
void CheckStep(const golden::Step& step, const std::string& prefix, size_t num_heads, SwavMethod& method,
               StepContext& context) {
  std::vector<at::Tensor> outputs = {step.Input(prefix + "embedding").clone()};
  for (size_t head = 0; head < num_heads; ++head) {
    outputs.push_back(step.Input(absl::StrCat(prefix, "scores", head)).clone().requires_grad_());
  }
  context.outputs = outputs;
  ASSERT_OK(method.ComputeLoss(context));
  context.loss.backward();
  ASSERT_OK(method.Advance(context));
  for (const auto& [full_name, expected] : step.outputs) {
    if (!absl::StartsWith(full_name, prefix)) continue;
    SCOPED_TRACE(full_name);
    const std::string name(absl::StripPrefix(full_name, prefix));
    if (name == "loss") {
      EXPECT_TRUE(golden::Matches(context.loss, expected));
    } else if (absl::StartsWith(name, "grad_scores")) {
      size_t head = outputs.size();
      ASSERT_TRUE(absl::SimpleAtoi(absl::StripPrefix(name, "grad_scores"), &head) && head + 1 < outputs.size());
      EXPECT_TRUE(golden::Matches(outputs[1 + head].grad(), expected));
    } else {
      golden::CheckSwavState(method, name, expected);
    }
  }
}

void CheckRank(const golden::Case& golden_case, const std::string& prefix, Communicator& communicator) {
  const SwavOptions options = golden::SwavOptionsOf(golden_case);
  GivenOutputsModel model(options.num_prototypes, options.embedding_dim);
  SwavMethod method(options, /*seed=*/0);
  golden::SwavRun run(&model, golden_case.Count("batch"), communicator);
  ASSERT_OK(method.Prepare(run.context()));
  golden::LoadQueue(golden_case, &method);
  for (size_t index = 0; index < golden_case.steps.size(); ++index) {
    SCOPED_TRACE(absl::StrCat("step ", index));
    CheckStep(golden_case.steps[index], prefix, options.num_prototypes.size(), method, run.context());
  }
}

void CheckOneRank(const golden::Case& golden_case) { CheckRank(golden_case, "", *MakeLocalCommunicator()); }

TEST(SwavLossGolden, LossGradientsAndQueueAreVissls) {
  golden::RunCategory("swav_loss", {{"swav_loss", &CheckOneRank}});
}

TEST(SwavLossGolden, LossGradientsAndQueueOfSeveralRanksAreVissls) {
  golden::RunAsThreads({{"swav_loss", &CheckRank}});
}

TEST(SwavLossGolden, LossGradientsAndQueueOfTwoProcessesAreVissls) {
  golden::RunAsProcesses({{"swav_loss", &CheckRank}});
}

}  // namespace
}  // namespace ssl
