// SPDX-License-Identifier: Apache-2.0
//
// What sessions of several ranks do when one of them alone fails: all end, the others say which rank of which host it
// was, and what was saved before goes on.
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/host_name.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/session.h"
#include "ssl/core/standard_train_step.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fake_session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/distributed/agree.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kLastWhole = 2;  // steps

// "rank 1 (on a)"
std::string RankOne() { return absl::StrCat("rank 1 (on ", HostName("unknown"), ")"); }

// Gives fewer batches on rank 1 than it has promised, as a file that was cut short since does.
class ShortSource : public FakeSource {
 public:
  explicit ShortSource(const Communicator& communicator)
      : FakeSource(40, 4, communicator.rank(), communicator.size()), is_short_(communicator.rank() == 1) {}
  absl::StatusOr<const Batch*> Next() override {
    if (is_short_ && given_++ == kLastWhole) return nullptr;
    return FakeSource::Next();
  }

 private:
  const bool is_short_;
  int64_t given_ = 0;
};

// Saves each step, and fills rank 1's disk after the second.
class Saver : public Hook {
 public:
  explicit Saver(FaultFileSystem* disk = nullptr) : disk_(disk) {}
  absl::string_view name() const override { return "saver"; }
  HookStage stage() const override { return HookStage::kPersist; }
  absl::Status OnStep(StepContext& context) override {
    if (context.state.iteration > kLastWhole) {
      SSL_RETURN_IF_ERROR(context.checkpoints->Wait());
      if (disk_ != nullptr) disk_->FailCall(disk_->calls() + 1, ENOSPC, FaultFileSystem::Repeat::kFromThenOn);
    }
    return context.checkpoints->Save();
  }

 private:
  FaultFileSystem* const disk_;
};

// Both ranks find the checkpoint of the second step whole, and nothing beside it.
void ExpectGoesOnAfterLastWhole(const ConfigNode& config, const std::string& directory) {
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names, PosixFileSystem().List(directory + "/checkpoints"));
  EXPECT_THAT(names, Each(AllOf(Not(HasSubstr("tmp")), Not(HasSubstr("step_3")))));
  EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run([&](Communicator& communicator) -> absl::Status {
    SessionOptions options;
    options.communicator = &communicator;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, MakeSession(config, std::move(options)));
    SSL_RETURN_IF_ERROR(session->Start());
    EXPECT_EQ(session->state().iteration, kLastWhole);
    return session->Train().status();
  }));
}

// All ranks find it, and rank 0 is enough to say it.
TEST(SessionRanksTest, WhatIsWrongOnAllRanks_IsSaidByOneOfThem) {
  for (const char* key : {"MODEL.BASE_MODEL_NAME", "LOSS.name", "OPTIMIZER.name", "OPTIMIZER.param_schedulers.lr.name",
                          "TRAINER.TRAIN_STEP_NAME"}) {
    SCOPED_TRACE(key);
    ConfigNode config = FakeConfig("");
    config.SetPath(key, ConfigNode::FromString("no_such"));
    std::vector<absl::Status> statuses(2);
    EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run([&](Communicator& communicator) {
      SessionOptions options;
      options.communicator = &communicator;
      statuses[communicator.rank()] = MakeSession(config, std::move(options)).status();
      return absl::OkStatus();
    }));
    EXPECT_THAT(statuses, Each(StatusIs(absl::StatusCode::kNotFound, HasSubstr("no_such"))));
    EXPECT_FALSE(IsSaidOnThisHost(statuses[0]));
    EXPECT_TRUE(IsSaidOnThisHost(statuses[1]));
  }
}

TEST(SessionRanksTest, AnExceptionOfOneRankWhileItBuilds_EndsAll) {
  Registries registries = FakeRegistries();
  ASSERT_OK(registries.train_steps.Register(
      "throws", [](const ConfigNode&, const BuildContext& context) -> absl::StatusOr<std::unique_ptr<TrainStep>> {
        if (context.communicator.rank() == 1) throw std::runtime_error("no room here");
        return std::make_unique<StandardTrainStep>();
      }));
  ConfigNode config = FakeConfig("");
  config.SetPath("TRAINER.TRAIN_STEP_NAME", ConfigNode::FromString("throws"));
  std::vector<absl::Status> statuses(2);
  ASSERT_OK(ThreadWorld(2, absl::Seconds(60)).Run([&](Communicator& communicator) {
    SessionOptions options;
    options.communicator = &communicator;
    statuses[communicator.rank()] = Session::Create(config, registries, std::move(options)).status();
    return absl::OkStatus();
  }));
  EXPECT_THAT(statuses[0],
              StatusIs(absl::StatusCode::kAborted,
                       AllOf(HasSubstr("building the loop failed on " + RankOne()), HasSubstr("no room here"))));
  EXPECT_THAT(statuses[1], StatusIs(absl::StatusCode::kInternal, HasSubstr("building the loop: no room here")));
}

// As a host's own trunk may. The others wait in the reduction of its gradients, whose communicator is a duplicate.
class ThrowingTrainStep : public StandardTrainStep {
 public:
  explicit ThrowingTrainStep(bool throws) : throws_(throws) {}
  absl::Status Train(SelfSupervisionTask& task, HookList& hooks, UpdateBatches& batches,
                     StepContext& context) override {
    if (throws_ && context.state.iteration == kLastWhole) throw std::runtime_error("the trunk has no memory");
    return StandardTrainStep::Train(task, hooks, batches, context);
  }

 private:
  const bool throws_;
};

// The process of the rank that failed lives on, as a service does, and nothing else would tell the other.
TEST(SessionRanksTest, AnExceptionOfOneRankInAStep_EndsAllAtOnce) {
  EXPECT_OK(ProcessWorld(2).Run([](Communicator& communicator) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> both_have_ended, communicator.Duplicate());
    Registries registries = FakeRegistries();
    SSL_RETURN_IF_ERROR(registries.train_steps.Register(
        "throws", [](const ConfigNode&, const BuildContext& context) -> absl::StatusOr<std::unique_ptr<TrainStep>> {
          return std::make_unique<ThrowingTrainStep>(context.communicator.rank() == 1);
        }));
    ConfigNode config = FakeConfig("");
    config.SetPath("TRAINER.TRAIN_STEP_NAME", ConfigNode::FromString("throws"));
    SessionOptions options;
    options.communicator = &communicator;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         Session::Create(config, registries, std::move(options)));
    const absl::Status ended = session->Train().status();
    if (communicator.rank() == 1) {
      EXPECT_THAT(ended, StatusIs(absl::StatusCode::kInternal, HasSubstr("the trunk has no memory")));
    } else {
      EXPECT_THAT(ended, StatusIs(absl::StatusCode::kUnavailable,
                                  AllOf(HasSubstr("rank 1"), HasSubstr("the trunk has no memory"))));
    }
    return both_have_ended->Barrier();
  }));
}

TEST(SessionRanksTest, ARankThatRunsOutOfData_EndsAll) {
  EXPECT_OK(ProcessWorld(2).RunWithOptions([](const GlooOptions& gloo) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> communicator, MakeGlooCommunicator(gloo));
    const std::string directory = gloo.rendezvous.file + ".run";
    const ConfigNode config = FakeConfig(directory);
    SessionOptions options;
    options.communicator = communicator.get();
    options.train_source = std::make_unique<ShortSource>(*communicator);
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, MakeSession(config, std::move(options)));
    SSL_RETURN_IF_ERROR(session->AddHook(std::make_unique<Saver>()));
    const absl::Status ended = session->Train().status();
    if (communicator->rank() == 1) {
      EXPECT_THAT(ended,
                  StatusIs(absl::StatusCode::kInternal,
                           HasSubstr("the source of the train phase ended after batch 2 of the 5 of its epoch")));
    } else {
      EXPECT_THAT(ended, StatusIs(absl::StatusCode::kUnavailable,
                                  AllOf(HasSubstr("rank 1 (process "),
                                        HasSubstr(absl::StrCat(" on ", HostName("unknown"),
                                                               ") is in no operation any more: the source of the train "
                                                               "phase ended after batch 2 of the 5")))));
      session.reset();  // it holds the directory
      ExpectGoesOnAfterLastWhole(config, directory);
    }
    return absl::OkStatus();
  }));
}

TEST(SessionRanksTest, ADiskThatIsFullForOneRank_EndsAllAndSpoilsNothing) {
  for (const bool in_background : {false, true}) {
    const std::string directory = MakeTempDir("session_ranks");
    ConfigNode config = FakeConfig(directory);
    config.SetPath("CHECKPOINT.SAVE_IN_BACKGROUND", ConfigNode::FromBool(in_background));
    FaultFileSystem disk(PosixFileSystem(), directory);
    std::vector<absl::Status> ends(2);
    ASSERT_OK(ThreadWorld(2, absl::Seconds(60)).Run([&](Communicator& communicator) -> absl::Status {
      SessionOptions options;
      options.communicator = &communicator;
      if (communicator.rank() == 1) options.file_system = &disk;
      SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, MakeSession(config, std::move(options)));
      SSL_RETURN_IF_ERROR(session->AddHook(std::make_unique<Saver>(communicator.rank() == 1 ? &disk : nullptr)));
      ends[communicator.rank()] = session->Train().status();
      return absl::OkStatus();
    }));
    EXPECT_THAT(ends[0],
                StatusIs(absl::StatusCode::kAborted, AllOf(HasSubstr("writing a checkpoint failed on " + RankOne()),
                                                           HasSubstr("No space left on device"))));
    EXPECT_THAT(ends[1], StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("No space left on device")));
    ExpectGoesOnAfterLastWhole(config, directory);
  }
}

}  // namespace
}  // namespace ssl
