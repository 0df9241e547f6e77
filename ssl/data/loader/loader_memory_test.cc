// SPDX-License-Identifier: Apache-2.0
//
// What the batches of a source take of the memory: said at the start, and refused where it is more than is free.
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/available_memory.h"
#include "ssl/config/merge.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/registries.h"
#include "ssl/data/loader/data_source_builder.h"
#include "ssl/data/register_data.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kSampleBytes = 1000 * 1000 * 4;  // a grey image of 1000 x 1000 floats

class LoaderMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterData(&registries_)); }

  // Of `side` x `side` pixels; half of the samples make a batch.
  void UseImages(int64_t samples, int64_t side) {
    const std::string split =
        absl::StrCat("{DATA_SOURCES: [synthetic], DATA_LIMIT: ", samples,
                     ", DEFAULT_GRAY_IMG_SIZE: 8, IMAGE_CHANNELS: 1,\n", "      BATCHSIZE_PER_REPLICA: ", samples / 2,
                     ",\n      TRANSFORMS: [{name: Resize, size: [", side, ", ", side, "]}, {name: ToTensor}]}\n");
    config_ = registries_.options.Defaults();
    MergeInto(&config_,
              ParseYaml(absl::StrCat("DATA:\n  NUM_DATALOADER_WORKERS: 2\n  TRAIN: ", split, "  TEST: ", split),
                        "run.yaml", nullptr)
                  .value());
  }

  absl::Status Make(const char* split) {
    return MakePhaseSource(config_.Section(absl::StrCat("DATA.", split)), {config_, registries_, *local_}).status();
  }

  absl::Status MakeEvaluation() {
    const ConfigNode& test = config_.Section("DATA.TEST");
    return MakeEvaluationSource(test, test, {config_, registries_, *local_}).status();
  }

  Registries registries_;
  ConfigNode config_;
  const std::unique_ptr<Communicator> local_ = MakeLocalCommunicator();
};

TEST_F(LoaderMemoryTest, BatchesThatAreLargerThanMemory_AreRefused) {
  UseImages(AvailableMemoryBytes() / kSampleBytes * 2, 1000);
  const absl::StatusCode invalid = absl::StatusCode::kInvalidArgument;
  const auto said = [](const char* split) {
    return AllOf(HasSubstr(absl::StrCat("config.DATA.", split, ".BATCHSIZE_PER_REPLICA is ")),
                 HasSubstr(": 2 batches take "), HasSubstr(" bytes of memory that are free"));
  };
  EXPECT_THAT(Make("TRAIN"), StatusIs(invalid, AllOf(said("TRAIN"), HasSubstr("run.yaml:4: "))));
  EXPECT_THAT(Make("TEST"), StatusIs(invalid, AllOf(said("TEST"), HasSubstr("run.yaml:7: "))));
  EXPECT_THAT(MakeEvaluation(), StatusIs(invalid, said("TEST")));
}

TEST_F(LoaderMemoryTest, BatchesOfAllRanksOfAHost_ShareItsMemory) {
  UseImages(AvailableMemoryBytes() / kSampleBytes / 3, 1000);
  config_.SetPath("DISTRIBUTED.NUM_PROC_PER_NODE", ConfigNode::FromInt(4));
  EXPECT_THAT(Make("TRAIN"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(" bytes for each of 4 ranks")));
}

// Each of them would fit.
TEST_F(LoaderMemoryTest, BatchesAndCaches_AddUp) {
  const int64_t available = AvailableMemoryBytes();
  UseImages(available / kSampleBytes * 4 / 10, 1000);
  for (const char* split : {"TRAIN", "TEST"}) {
    config_.SetPath(absl::StrCat("DATA.", split, ".CACHE"), ConfigNode::FromString("raw"));
    config_.SetPath(absl::StrCat("DATA.", split, ".CACHE_BYTES"), ConfigNode::FromInt(available / 10 * 4));
  }
  EXPECT_THAT(Make("TRAIN"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("config.DATA.TRAIN.BATCHSIZE_PER_REPLICA is "), HasSubstr(": 2 batches take "),
                             HasSubstr(absl::StrCat("beside caches of ", 2 * (available / 10 * 4), " bytes")))));
}

TEST_F(LoaderMemoryTest, SmallCache_IsSaidInKilobytes) {
  UseImages(50, 100);
  config_.SetPath("DATA.TEST.CACHE", ConfigNode::FromString("raw"));
  config_.SetPath("DATA.TEST.CACHE_BYTES", ConfigNode::FromInt(200000));
  CapturedLog log;
  ASSERT_OK(Make("TEST"));
  EXPECT_THAT(log.Text(), HasSubstr("raw images take up to 200 KB of memory"));
}

TEST_F(LoaderMemoryTest, WhatBatchesTake_IsSaid) {
  UseImages(50, 100);
  CapturedLog log;
  ASSERT_OK(Make("TRAIN"));
  EXPECT_THAT(log.Text(), HasSubstr("config.DATA.TRAIN: 3 batches of 25 samples take 3 MB of memory"));
  config_.SetPath("DATA.NUM_DATALOADER_WORKERS", ConfigNode::FromInt(0));
  ASSERT_OK(Make("TEST"));
  EXPECT_THAT(log.Text(), HasSubstr("config.DATA.TEST: 1 batch of 25 samples takes 1 MB of memory"));
  log.lines.clear();
  ASSERT_OK(MakeEvaluation());
  EXPECT_THAT(log.Text(), Not(HasSubstr("of memory"))) << "it reads once, and has no phase to start";
}

TEST_F(LoaderMemoryTest, OfSeveralRanks_OneSays) {
  UseImages(50, 100);
  config_.SetPath("DISTRIBUTED.NUM_PROC_PER_NODE", ConfigNode::FromInt(2));
  CapturedLog log;
  ASSERT_OK(ThreadWorld(2, absl::Seconds(20)).Run([&](Communicator& communicator) {
    return MakePhaseSource(config_.Section("DATA.TRAIN"), {config_, registries_, communicator}).status();
  }));
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("take 2 MB of memory for each of 2 ranks")));
}

}  // namespace
}  // namespace ssl
