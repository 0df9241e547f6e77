// SPDX-License-Identifier: Apache-2.0
//
// Runs SwavMethod on given outputs of a head: loss, gradients, queue and counters over several calls.
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"
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

// A case that lacks something would end a rank, and the others would wait for it.
void FindInputs(const golden::Case& golden_case, int64_t ranks) {
  const SwavOptions options = golden::SwavOptionsOf(golden_case);
  for (const golden::Step& step : golden_case.steps) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      ASSERT_TRUE(step.Input(absl::StrCat("rank", rank, ".embedding")).defined());
      for (size_t head = 0; head < options.num_prototypes.size(); ++head) {
        ASSERT_TRUE(step.Input(absl::StrCat("rank", rank, ".scores", head)).defined());
      }
    }
  }
}

void CheckSeveralRanks(const golden::Case& golden_case) {
  const int64_t ranks = golden_case.IntIn("world", 1, 16);
  ASSERT_NO_FATAL_FAILURE(FindInputs(golden_case, ranks));
  EXPECT_OK(ThreadWorld(ranks, absl::Seconds(60)).Run([&golden_case](Communicator& communicator) {
    CheckRank(golden_case, absl::StrCat("rank", communicator.rank(), "."), communicator);
    return absl::OkStatus();
  }));
}

TEST(SwavLossGolden, LossGradientsAndQueueAreVissls) {
  golden::RunCategory("swav_loss", {{"swav_loss", &CheckOneRank}});
}

const std::set<std::string> kOtherOps = {"barlow_twins_loss", "deepclusterv2_cluster_memory", "dino_loss",
                                         "moco_infonce",      "simclr_info_nce_loss",         "sinkhorn"};

TEST(SwavLossGolden, LossGradientsAndQueueOfSeveralRanksAreVissls) {
  golden::RunCategory("dist", {{"swav_loss", &CheckSeveralRanks}}, kOtherOps);
}

// The cases of a world of two, each rank a process.
TEST(SwavLossGolden, LossGradientsAndQueueOfTwoProcessesAreVissls) {
  EXPECT_OK(ProcessWorld(2).Run([](Communicator& communicator) {
    const std::string prefix = absl::StrCat("rank", communicator.rank(), ".");
    int64_t checked = 0;
    golden::RunCategory("dist",
                        {{"swav_loss",
                          [&](const golden::Case& golden_case) {
                            if (golden_case.IntIn("world", 1, 16) != communicator.size()) return;
                            ASSERT_NO_FATAL_FAILURE(FindInputs(golden_case, communicator.size()));
                            CheckRank(golden_case, prefix, communicator);
                            ++checked;
                          }}},
                        kOtherOps);
    EXPECT_GT(checked, 0);
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
