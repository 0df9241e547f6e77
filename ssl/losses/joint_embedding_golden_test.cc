// SPDX-License-Identifier: Apache-2.0
//
// SimCLR, multi-crop SimCLR and Barlow Twins against VISSL, on one and on several ranks: loss and gradients.
#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/losses/barlow_twins_loss.h"
#include "ssl/losses/info_nce.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"
#include "tests/golden/rank_cases.h"

namespace ssl {
namespace {

using LossFunction = std::function<absl::StatusOr<at::Tensor>(const at::Tensor& embeddings, Communicator&)>;
using LossOfCase = std::function<LossFunction(const golden::Case&)>;

LossFunction SimclrOf(const golden::Case& golden_case) {
  const InfoNceOptions options{2, golden_case.Double("temperature"), true};
  return [options](const at::Tensor& embeddings, Communicator& communicator) {
    return InfoNce(embeddings, options, communicator);
  };
}

LossFunction MulticropSimclrOf(const golden::Case& golden_case) {
  const InfoNceOptions options{golden_case.Int("num_crops"), golden_case.Double("temperature"), false};
  return [options](const at::Tensor& embeddings, Communicator& communicator) {
    return InfoNce(embeddings, options, communicator);
  };
}

LossFunction BarlowTwinsOf(const golden::Case& golden_case) {
  // The cases of several ranks do not name their parameters; their numbers are those of lambda 0.0051 and scale 0.1.
  const BarlowTwinsLossOptions options{golden_case.Double("lambda_", 0.0051), golden_case.Double("scale_loss", 0.1)};
  return [options](const at::Tensor& embeddings, Communicator& communicator) {
    return BarlowTwinsLoss(embeddings, options, communicator);
  };
}

struct LossAndGradient {
  at::Tensor loss;
  at::Tensor gradient;
};

absl::StatusOr<LossAndGradient> Run(const LossFunction& loss_of, const at::Tensor& input, Communicator& communicator) {
  const at::Tensor embeddings = input.clone().set_requires_grad(true);
  SSL_ASSIGN_OR_RETURN(const at::Tensor loss, loss_of(embeddings, communicator));
  loss.backward();
  return LossAndGradient{loss.detach(), embeddings.grad()};
}

void CheckRank(const LossOfCase& loss_of, const golden::Case& golden_case, const std::string& prefix,
               Communicator& communicator) {
  for (const golden::Step& step : golden_case.steps) {
    ASSERT_OK_AND_ASSIGN(const LossAndGradient result,
                         Run(loss_of(golden_case), step.Input(prefix + "embedding"), communicator));
    EXPECT_TRUE(golden::Matches(result.loss.item<double>(), step.Expected(prefix + "loss"))) << prefix;
    EXPECT_TRUE(golden::Matches(result.gradient, step.Expected(prefix + "grad_embedding"))) << prefix;
  }
}

golden::CaseRunner OneRank(const LossOfCase& loss_of) {
  return [loss_of](const golden::Case& golden_case) { CheckRank(loss_of, golden_case, "", *MakeLocalCommunicator()); };
}

golden::RankCheck OneOfRanks(const LossOfCase& loss_of) {
  return [loss_of](const golden::Case& golden_case, const std::string& prefix, Communicator& communicator) {
    CheckRank(loss_of, golden_case, prefix, communicator);
  };
}

std::map<std::string, golden::RankCheck> ChecksOfRanks() {
  return {{"barlow_twins_loss", OneOfRanks(&BarlowTwinsOf)}, {"simclr_info_nce_loss", OneOfRanks(&SimclrOf)}};
}

TEST(JointEmbeddingGolden, OneRank_LossesAndGradientsMatch) {
  golden::RunCategory(
      "losses",
      {{"barlow_twins_loss", OneRank(&BarlowTwinsOf)},
       {"multicrop_simclr_info_nce_loss", OneRank(&MulticropSimclrOf)},
       {"simclr_info_nce_loss", OneRank(&SimclrOf)}},
      /*out_of_scope=*/
      {"bce_logits_multiple_output_single_target", "cross_entropy_multiple_output_single_target", "deepclusterv2_loss",
       "dino_distillation_loss", "dino_loss", "distillation_loss", "ibot_distillation_loss", "ibot_loss",
       "msn_distillation_loss", "msn_loss", "nce_loss_with_memory", "swav_distillation_loss", "swav_momentum_loss",
       "teacher_momentum_schedule"});
}

TEST(JointEmbeddingGolden, SeveralRanks_LossesAndGradientsMatch) { golden::RunAsThreads(ChecksOfRanks()); }

TEST(JointEmbeddingGolden, TwoProcesses_LossesAndGradientsMatch) { golden::RunAsProcesses(ChecksOfRanks()); }

}  // namespace
}  // namespace ssl
