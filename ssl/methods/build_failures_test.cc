// SPDX-License-Identifier: Apache-2.0
//
// What one rank alone cannot build, where building is collective itself: batch norm over ranks has a group of its own
// in each model of a method. Whole sessions from a configuration; ranks are threads.
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/distributed/communicator.h"
#include "ssl/models/trunk.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/training_runs.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Two models, of which the second is built with the method.
constexpr char kMoco[] = R"(
DATA:
  TRAIN:
    COLLATE_FUNCTION: moco_collator
    TRANSFORMS:
      - {name: ImgReplicatePil, num_times: 2}
      - {name: ToTensor}
      - {name: Normalize, mean: [0.286], std: [0.353]}
MODEL:
  TRUNK: {NAME: of_a_host, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125, STEM: small, STAGES: 2}}
  HEAD: {PARAMS: [[mlp, {dims: [16, 16]}]]}
  SYNC_BN_CONFIG: {CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: 0}
LOSS: {name: moco_loss, moco_loss: {embedding_dim: 16, queue_size: 32}}
OPTIMIZER: {num_epochs: 1, param_schedulers: {lr: {name: constant, update_interval: epoch, value: 0.001}}}
)";

// Two ranks, of which rank 1 fails in its call `failing` of the factory of a trunk, from 1; 0: in none.
absl::Status TrainWithTrunkOfAHost(int64_t failing) {
  int64_t calls = 0;  // of rank 1
  TrainingRun run;
  run.ranks = 2;
  run.config = {kMoco};
  run.add_parts = [&calls, failing](Registries* registries) {
    return registries->trunks.Register(
        "of_a_host",
        [&calls, failing](const ConfigNode& params,
                          const BuildContext& context) -> absl::StatusOr<std::unique_ptr<Trunk>> {
          if (context.communicator.rank() == 1 && ++calls == failing) return absl::NotFoundError("no file trunk.bin");
          return context.registries.trunks.Make("resnet", params, context);
        });
  };
  return Train(run).status();
}

TEST(BuildFailures, OfOneRank_AreToldToTheOthers) {
  for (const int64_t failing : {1, 2}) {
    SCOPED_TRACE(failing);
    EXPECT_THAT(TrainWithTrunkOfAHost(failing),
                StatusIs(absl::StatusCode::kAborted,
                         AllOf(HasSubstr("building the model failed on rank 1 (on "), HasSubstr("no file trunk.bin"))));
  }
}

// What is built above is a run, but for the failure.
TEST(BuildFailures, OfNoRank_AreARun) { EXPECT_OK(TrainWithTrunkOfAHost(0)); }

}  // namespace
}  // namespace ssl
