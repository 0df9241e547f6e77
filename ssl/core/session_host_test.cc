// SPDX-License-Identifier: Apache-2.0
//
// A session inside another program: what the host has set in LibTorch stays, and sessions do not disturb each other.
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <c10/core/GradMode.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/autocast.h"
#include "ssl/core/generator_scope.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fake_session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Session> MakeSeededSession(ConfigNode config, int64_t seed = 0) {
  config.SetPath("SEED_VALUE", ConfigNode::FromInt(seed));
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(config, FakeRegistries(), {});
  EXPECT_OK(session);
  return session.ok() ? *std::move(session) : nullptr;
}

uint32_t TrainedHash(int64_t seed) {
  const std::unique_ptr<Session> session = MakeSeededSession(FakeConfig(""), seed);
  EXPECT_OK(session->Train());
  return *HashState(session->model());
}

TEST(HostTest, DrawsOnAsIfThereWereNoSession) {
  SeedForBuilding(3, 0);
  std::vector<at::Tensor> expected;
  for (int i = 0; i < 5; ++i) expected.push_back(at::rand({2}));

  SeedForBuilding(3, 0);
  EXPECT_TRUE(at::equal(at::rand({2}), expected[0]));
  const std::unique_ptr<Session> session = MakeSeededSession(FakeConfig(""));
  EXPECT_TRUE(at::equal(at::rand({2}), expected[1])) << "after Create";
  ASSERT_OK(session->Step());
  EXPECT_TRUE(at::equal(at::rand({2}), expected[2])) << "after Step";
  ASSERT_OK(session->Train());
  EXPECT_TRUE(at::equal(at::rand({2}), expected[3])) << "after Train";
  ASSERT_OK(session->Features(at::ones({2, 1, 4, 4}), {{"res5", {}}}));
  EXPECT_TRUE(at::equal(at::rand({2}), expected[4])) << "after Features";
}

TEST(HostTest, WhatItDraws_DoesNotReachTheRun) {
  const uint32_t alone = TrainedHash(1);
  at::rand({17});
  const std::unique_ptr<Session> session = MakeSeededSession(FakeConfig(""), 1);
  bool more = true;
  while (more) {
    at::rand({5});
    ASSERT_OK_AND_ASSIGN(more, session->Step());
  }
  EXPECT_EQ(*HashState(session->model()), alone);
}

TEST(HostTest, TwoSessionsStepByStep_TrainAsEachAlone) {
  const std::unique_ptr<Session> first = MakeSeededSession(FakeConfig(""), 1);
  const std::unique_ptr<Session> second = MakeSeededSession(FakeConfig(""), 2);
  bool more = true;
  while (more) {
    ASSERT_OK(first->Step());
    ASSERT_OK_AND_ASSIGN(more, second->Step());
  }
  EXPECT_EQ(*HashState(first->model()), TrainedHash(1));
  EXPECT_EQ(*HashState(second->model()), TrainedHash(2));
  EXPECT_NE(TrainedHash(1), TrainedHash(2));
}

TEST(HostTest, ItsOwnAutocast_StaysAndDoesNotReachTheRun) {
  const uint32_t alone = TrainedHash(1);
  const AutocastScope of_the_host(Autocast::kFloat16);
  const std::unique_ptr<Session> session = MakeSeededSession(FakeConfig(""), 1);
  bool more = true;
  while (more) {
    ASSERT_OK_AND_ASSIGN(more, session->Step());
    ASSERT_TRUE(at::autocast::is_autocast_enabled(at::kCPU));
    ASSERT_EQ(at::autocast::get_autocast_dtype(at::kCPU), at::kHalf);
  }
  ASSERT_OK(session->Finish());
  EXPECT_EQ(at::ones({4, 4}).matmul(at::ones({4, 4})).scalar_type(), at::kHalf);
  EXPECT_EQ(*HashState(session->model()), alone);
}

TEST(HostTest, ItsGradientMode_StaysAndDoesNotReachTheRun) {
  const uint32_t alone = TrainedHash(1);
  const c10::AutoGradMode of_the_host(false);
  const std::unique_ptr<Session> session = MakeSeededSession(FakeConfig(""), 1);
  ASSERT_OK(session->Train());
  EXPECT_FALSE(c10::GradMode::is_enabled());
  EXPECT_EQ(*HashState(session->model()), alone);
}

TEST(HostTest, AFailedStep_GivesEverythingBackToo) {
  const std::unique_ptr<Session> session = MakeSeededSession(FakeConfig(""));
  std::vector<std::string> events;
  auto failing = std::make_unique<RecordingHook>("failing", HookStage::kObserve, &events);
  failing->At("OnForward", [](StepContext&) -> absl::Status { throw 5; });
  ASSERT_OK(session->AddHook(std::move(failing)));
  SeedForBuilding(3, 0);
  const at::Tensor expected = at::rand({2});
  SeedForBuilding(3, 0);
  EXPECT_FALSE(session->Step().ok());
  EXPECT_TRUE(at::equal(at::rand({2}), expected));
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

TEST(HostTest, ItsFileSystemAndItsStop_AreThoseThatDataIsOpenedWith) {
  FaultFileSystem files(PosixFileSystem(), MakeTempDir("host"));
  StopToken stop;
  Registries registries = FakeRegistries();
  ASSERT_OK(registries.batch_sources.Register(
      "long_scan", [&](const ConfigNode&, const BuildContext& context) -> absl::StatusOr<std::unique_ptr<BatchSource>> {
        EXPECT_EQ(&context.file_system, &files);
        stop.Request(kStopTerminate);  // while it lasts
        if (context.stop->requested()) return absl::CancelledError("the scan was stopped");
        return std::make_unique<FakeSource>(40, 4, 0, 1);
      }));
  ConfigNode config = FakeConfig("");
  config.SetPath("DATA.TRAIN.BASE_DATASET", ConfigNode::FromString("long_scan"));
  SessionOptions options;
  options.file_system = &files;
  options.stop = &stop;
  EXPECT_THAT(Session::Create(config, registries, std::move(options)),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("the scan was stopped")));
}

// Else the other one would wait for its parameters until the operation times out.
TEST(HostTest, DataThatOneRankCannotOpen_EndsAllRanks) {
  std::vector<absl::Status> ends(2);
  ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&ends](Communicator& communicator) {
    const int64_t rank = communicator.rank();
    Registries registries = FakeRegistries();
    EXPECT_OK(registries.batch_sources.Register("missing", [rank](const ConfigNode&, const BuildContext&) {
      return rank == 1 ? absl::StatusOr<std::unique_ptr<BatchSource>>(absl::NotFoundError("no such folder"))
                       : std::make_unique<FakeSource>(40, 4, rank, 2);
    }));
    ConfigNode config = FakeConfig("");
    config.SetPath("DATA.TRAIN.BASE_DATASET", ConfigNode::FromString("missing"));
    SessionOptions options;
    options.communicator = &communicator;
    ends[rank] = Session::Create(config, registries, std::move(options)).status();
    return absl::OkStatus();
  }));
  EXPECT_THAT(ends[0], StatusIs(absl::StatusCode::kAborted, HasSubstr("opening the data failed on rank 1 ")));
  EXPECT_THAT(ends[1], StatusIs(absl::StatusCode::kNotFound, HasSubstr("no such folder")));
}

TEST(FeaturesTest, AreTheModelsAndChangeNothing) {
  const std::unique_ptr<Session> session = MakeSeededSession(FakeConfig(""), 1);
  ASSERT_OK(session->Step());
  const at::Tensor images = at::ones({2, 1, 4, 4});
  ASSERT_OK_AND_ASSIGN(const std::vector<at::Tensor> features, session->Features(images, {{"res5", {}}}));
  ASSERT_EQ(features.size(), 1u);
  EXPECT_TRUE(at::equal(features[0], session->model().Features(images, {{"res5", {}}})[0]));
  ASSERT_OK(session->Train());
  EXPECT_EQ(*HashState(session->model()), TrainedHash(1));
}

TEST(FeaturesTest, WhatTheModelThrows_IsAnErrorAndTheRunGoesOn) {
  const std::unique_ptr<Session> session = MakeSeededSession(FakeConfig(""), 1);
  EXPECT_THAT(session->Features(at::ones({2, 1, 3, 3}), {{"res5", {}}}),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("features: ")));
  ASSERT_OK(session->Train());
  EXPECT_EQ(*HashState(session->model()), TrainedHash(1));
}

}  // namespace
}  // namespace ssl
