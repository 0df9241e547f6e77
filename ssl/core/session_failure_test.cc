// SPDX-License-Identifier: Apache-2.0
//
// What a session does when something fails, wherever it is: nothing is thrown, nothing half-made is saved, and the
// first error stays the answer.
#include <c10/util/Exception.h>

#include <functional>
#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/error_detail.h"
#include "ssl/core/method.h"
#include "ssl/core/metrics.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fake_session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kTotalSteps = 20;

uint32_t UninterruptedHash() {
  std::unique_ptr<Session> session = *MakeSession(FakeConfig(""));
  EXPECT_OK(session->Train());
  return *HashState(session->model());
}

// Saves at every step, and tries to after an error.
class EagerSaver : public Hook {
 public:
  explicit EagerSaver(std::vector<absl::Status>* refused) : refused_(refused) {}
  absl::string_view name() const override { return "eager_saver"; }
  HookStage stage() const override { return HookStage::kPersist; }
  absl::Status OnStep(StepContext& context) override { return context.checkpoints->Save(); }
  absl::Status OnException(StepContext& context, const absl::Status&) override { return Try(context); }
  absl::Status OnEnd(StepContext& context) override { return Try(context); }

 private:
  absl::Status Try(StepContext& context) {
    const absl::Status status = context.checkpoints->Save();
    if (!status.ok()) refused_->push_back(status);
    return absl::OkStatus();
  }
  std::vector<absl::Status>* refused_;
};

// Steps until `session` stops or fails.
absl::Status StepToTheEnd(Session& session) {
  absl::StatusOr<bool> more = true;
  while (more.ok() && *more) more = session.Step();
  return more.status();
}

// Trains what `directory` holds to its end in a session without faults, which must give the undisturbed result.
void ExpectResumesAt(const ConfigNode& config, int64_t iteration) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> next, MakeSession(config));
  ASSERT_OK(next->Start());
  EXPECT_EQ(next->state().iteration, iteration);
  ASSERT_OK(next->Train());
  EXPECT_EQ(*HashState(next->model()), UninterruptedHash());
}

// Everything that a handler may do instead of returning OK.
absl::Status Fail(absl::string_view how) {
  if (how == "memory") throw std::bad_alloc();
  if (how == "device") TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory");
  if (how == "torch") TORCH_CHECK(false, "a tensor is wrong");
  if (how == "unknown") throw 5;
  return absl::DataLossError("the disk is gone");
}

// Hooks that are told of an error may fail at it; the run's error stays the one before.
TEST(SessionFailureTest, HookThatFailsBecauseOfAnError_IsNotItsCause) {
  const std::string directory = MakeTempDir("failing_save");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig(directory)));
  std::vector<std::string> events;
  auto hook = std::make_unique<RecordingHook>("told", HookStage::kObserve, &events);
  hook->At("OnException", [](StepContext&) { return absl::InternalError("this one, too"); });
  ASSERT_OK(session->AddHook(std::move(hook)));
  ASSERT_OK(session->Step());
  ASSERT_OK(PosixFileSystem().RemoveAll(directory));  // so that the save at the end fails

  EXPECT_THAT(session->Finish(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was removed")));

  EXPECT_THAT(events, Contains("told.OnException@1"));
  EXPECT_EQ(session->progress().phase, "finishing");
  EXPECT_EQ(session->progress().failing_hook, "");
  EXPECT_EQ(session->progress().failing_event, "");
}

// The save itself is made after the event's handlers, in the background: the next one tells of it.
TEST(SessionFailureTest, SaveThatFails_IsAnErrorOfTheHookThatAskedForIt) {
  const std::string directory = MakeTempDir("failing_save");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig(directory)));
  std::vector<absl::Status> refused;
  std::vector<std::string> events;
  ASSERT_OK(session->AddHook(std::make_unique<EagerSaver>(&refused)));
  auto later = std::make_unique<RecordingHook>("later", HookStage::kObserve, &events);
  later->At("OnStep", [](StepContext& context) {
    return context.state.iteration == 2 ? context.checkpoints->Save() : absl::OkStatus();
  });
  ASSERT_OK(session->AddHook(std::move(later)));
  ASSERT_OK(session->Start());
  ASSERT_OK(PosixFileSystem().RemoveAll(directory));

  const absl::Status first = StepToTheEnd(*session);

  EXPECT_THAT(first.message(), HasSubstr("hook 'eager_saver' (OnStep, iteration 2): "));
  EXPECT_EQ(session->progress().failing_hook, "eager_saver");
  EXPECT_EQ(session->progress().failing_event, "OnStep");
  EXPECT_EQ(session->Finish(), first);
}

class FailingHookTest : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(FailingHookTest, EndsTheRun_AndWhatItLeftHalfMadeIsNeverSaved) {
  const auto [event, how] = GetParam();
  // Phase events come at the edge of the epochs, the others in the fourth step; OnStep before the hook that saves.
  const std::string name = event;
  const bool at_start = name == "OnStart";
  const bool at_edge = name == "OnPhaseEnd";
  const int64_t at = at_start || name == "OnPhaseStart" ? 0 : at_edge ? 10 : name == "OnStep" ? 4 : 3;
  const int64_t saved = name == "OnStep" ? 3 : at;
  const ConfigNode config = FakeConfig(MakeTempDir("failing_hook"));
  std::vector<absl::Status> refused;
  std::vector<std::string> events;
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(config));
    auto failing = std::make_unique<RecordingHook>("failing", HookStage::kObserve, &events);
    failing->At(event, [at = at, how = how](StepContext& context) {
      return context.state.iteration == at ? Fail(how) : absl::OkStatus();
    });
    ASSERT_OK(session->AddHook(std::move(failing)));
    ASSERT_OK(session->AddHook(std::make_unique<EagerSaver>(&refused)));

    const absl::Status first = StepToTheEnd(*session);

    EXPECT_THAT(first.message(), HasSubstr(absl::StrCat("hook 'failing' (", event, ", iteration ", at, "): ")));
    EXPECT_EQ(session->state().iteration, at);
    EXPECT_EQ(session->Step().status(), first) << "nothing is trained after an error";
    EXPECT_EQ(session->Start(), first);
    EXPECT_EQ(session->state().iteration, at);
    EXPECT_EQ(session->Finish(), first);
    EXPECT_EQ(session->Finish(), first);
    EXPECT_EQ(session->Train().status(), first);
    EXPECT_EQ(session->progress().failing_hook, "failing");
    EXPECT_EQ(session->progress().failing_event, event);
    EXPECT_EQ(session->progress().iteration, at);
    EXPECT_EQ(session->progress().last_checkpoint, saved > 0 ? saved : -1);
  }
  EXPECT_THAT(refused, ElementsAre(StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("has failed")),
                                   StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("has failed"))));
  EXPECT_THAT(events, Contains(absl::StrCat("failing.OnException@", at)).Times(1));
  EXPECT_THAT(events, Contains(absl::StrCat("failing.OnEnd@", at)).Times(1));
  ExpectResumesAt(config, saved);
}

TEST(SessionFailureTest, ExhaustedMemoryOfTheDevice_SaysWhatToLower) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig("")));
  std::vector<std::string> events;
  auto hook = std::make_unique<RecordingHook>("full", HookStage::kObserve, &events);
  hook->At("OnForward", [](StepContext&) { return Fail("device"); });
  ASSERT_OK(session->AddHook(std::move(hook)));

  const absl::Status first = StepToTheEnd(*session);

  EXPECT_THAT(first, StatusIs(absl::StatusCode::kResourceExhausted,
                              HasSubstr("CUDA out of memory. Lower config.DATA.TRAIN.BATCHSIZE_PER_REPLICA")));
  EXPECT_EQ(DetailOf(first, kDetailMemory), kMemoryOfDevice);
  EXPECT_EQ(session->Finish(), first);
}

INSTANTIATE_TEST_SUITE_P(EveryEvent, FailingHookTest,
                         ::testing::Combine(::testing::Values("OnStart", "OnPhaseStart", "OnForward", "OnLossAndMeter",
                                                              "OnBackward", "OnUpdate", "OnStep", "OnPhaseEnd"),
                                            ::testing::Values("status", "memory", "torch", "unknown")));

// A source that fails at one batch.
class FailingSource : public FakeSource {
 public:
  FailingSource(int64_t at, std::string how) : FakeSource(40, 4, 0, 1), left_(at), how_(std::move(how)) {}
  absl::StatusOr<const Batch*> Next() override {
    if (left_-- > 0) return FakeSource::Next();
    if (how_ == "end") return nullptr;
    return Fail(how_);
  }

 private:
  int64_t left_;
  const std::string how_;
};

TEST(FailingSourceTest, ErrorsAndExceptions_EndTheRun) {
  for (const char* how : {"status", "memory", "torch", "unknown"}) {
    SessionOptions options;
    options.train_source = std::make_unique<FailingSource>(3, how);
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig(""), std::move(options)));
    const absl::Status first = session->Train().status();
    EXPECT_FALSE(first.ok()) << how;
    EXPECT_EQ(session->state().iteration, 3) << how;
    EXPECT_EQ(session->Finish(), first) << how;
    EXPECT_EQ(session->progress().phase, "training");
    EXPECT_EQ(session->progress().epoch, 0);
  }
}

TEST(FailingSourceTest, EarlyEndOfAnEpoch_IsAnErrorThatLeavesNothing) {
  for (const int batches : {1, 2}) {
    ConfigNode config = FakeConfig(MakeTempDir("short"));
    config.SetPath("OPTIMIZER.grad_acc_steps", ConfigNode::FromInt(batches));
    SessionOptions options;
    options.train_source = std::make_unique<FailingSource>(3, "end");
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(config, std::move(options)));
    EXPECT_THAT(session->Train(), StatusIs(absl::StatusCode::kInternal,
                                           "the source of the train phase ended after batch 3 of the 10 of its epoch"));
    EXPECT_EQ(session->progress().last_checkpoint, -1);
  }
}

// Fails in one of its calls.
class FailingSink : public MetricSink {
 public:
  FailingSink(std::string where, std::string how) : where_(std::move(where)), how_(std::move(how)) {}
  absl::Status Write(const MetricReport&) override { return where_ == "write" ? Fail(how_) : absl::OkStatus(); }
  absl::Status Flush() override { return where_ == "flush" ? Fail(how_) : absl::OkStatus(); }

 private:
  const std::string where_;
  const std::string how_;
};

TEST(FailingSinkTest, WhatItThrows_EndsTheRunAndReachesAllHooks) {
  for (const char* where : {"write", "flush"}) {
    for (const char* how : {"status", "memory", "unknown"}) {
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig("")));
      std::vector<std::string> events;
      auto reporting = std::make_unique<RecordingHook>("reporting", HookStage::kReport, &events);
      reporting->At("OnStep", [](StepContext& context) {
        return context.metrics.Report(context.state.iteration, 0, context.communicator).status();
      });
      ASSERT_OK(session->AddHook(std::move(reporting)));
      session->metrics().AddSink(std::make_unique<FailingSink>(where, how));
      EXPECT_FALSE(session->Train().ok()) << where << " " << how;
      EXPECT_EQ(session->state().iteration, std::string(where) == "write" ? 1 : kTotalSteps);
      EXPECT_EQ(events.back().substr(0, 15), "reporting.OnEnd") << where << " " << how;
    }
  }
}

// Fails in one call of Flush, as a file does whose pages could not be written: the next call says that all is well.
class OnceFailingSink : public MetricSink {
 public:
  OnceFailingSink(int failing, int* flushes) : failing_(failing), flushes_(*flushes) {}
  absl::Status Write(const MetricReport&) override { return absl::OkStatus(); }
  absl::Status Flush() override {
    return ++flushes_ == failing_ ? absl::ResourceExhaustedError("pages are lost") : absl::OkStatus();
  }

 private:
  const int failing_;
  int& flushes_;
};

TEST(FailingSinkTest, AFlushThatFailsOnce_EndsTheRunAndLosesNoCheckpoint) {
  for (const int failing : {1, 2}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig(MakeTempDir("flush"))));
    int flushes = 0;
    session->metrics().AddSink(std::make_unique<OnceFailingSink>(failing, &flushes));
    EXPECT_THAT(session->Train(), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("pages are lost")));
    EXPECT_EQ(flushes, 2) << "before the last save, and behind OnEnd";
    EXPECT_EQ(session->progress().last_checkpoint, kTotalSteps) << failing;
  }
}

TEST(FailingSinkTest, AFlushThatFailsInFrontOfASave_NamesWhoAskedForTheSaveAndWhen) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig(MakeTempDir("flush"))));
  std::vector<absl::Status> refused;
  int flushes = 0;
  ASSERT_OK(session->AddHook(std::make_unique<EagerSaver>(&refused)));
  session->metrics().AddSink(std::make_unique<OnceFailingSink>(3, &flushes));
  EXPECT_THAT(session->Train(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "hook 'eager_saver' (OnStep, iteration 3): metrics before a save: pages are lost"));
  EXPECT_EQ(session->progress().failing_hook, "eager_saver");
  EXPECT_EQ(session->progress().failing_event, "OnStep");
  EXPECT_EQ(session->progress().last_checkpoint, 2);
}

TEST(FailingSinkTest, AFlushThatFailsInFrontOfASnapshot_NamesTheSnapshot) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig(MakeTempDir("flush"))));
  int flushes = 0;
  session->metrics().AddSink(std::make_unique<OnceFailingSink>(1, &flushes));
  ASSERT_OK(session->Step());
  session->RequestSnapshot();
  EXPECT_THAT(session->Train(), StatusIs(absl::StatusCode::kResourceExhausted,
                                         "snapshot asked for at iteration 1: metrics before a save: pages are lost"));
}

// A method that fails in one of its calls of the third step.
class FailingMethod : public Method {
 public:
  explicit FailingMethod(std::string where) : where_(std::move(where)) {}
  absl::Status Prepare(StepContext&) override { return where_ == "prepare" ? Fail("torch") : absl::OkStatus(); }
  absl::Status Forward(StepContext& context) override {
    if (where_ == "forward" && context.state.iteration == 2) return Fail("torch");
    return Method::Forward(context);
  }
  absl::Status ComputeLoss(StepContext& context) override {
    if (where_ == "loss" && context.state.iteration == 2) return Fail("memory");
    context.loss = context.outputs[0].pow(2).mean();
    if (where_ == "backward" && context.state.iteration == 2) context.loss = context.loss.detach();
    return absl::OkStatus();
  }
  absl::Status Advance(StepContext& context) override {
    return where_ == "advance" && context.state.iteration == 2 ? Fail("unknown") : absl::OkStatus();
  }

 private:
  const std::string where_;
};

absl::StatusOr<std::unique_ptr<Session>> SessionWithMethod(const std::string& where, const std::string& directory) {
  Registries registries = FakeRegistries();
  EXPECT_OK(registries.methods.Register("failing_loss", [where](const ConfigNode&, const BuildContext&) {
    return absl::StatusOr<std::unique_ptr<Method>>(std::make_unique<FailingMethod>(where));
  }));
  ConfigNode config = FakeConfig(directory);
  config.SetPath("LOSS.name", ConfigNode::FromString("failing_loss"));
  return Session::Create(config, registries, {});
}

TEST(FailingMethodTest, ExceptionWhileBuilding_IsAnError) {
  EXPECT_THAT(SessionWithMethod("prepare", ""),
              StatusIs(absl::StatusCode::kInternal, "preparing the method: a tensor is wrong"));
}

TEST(FailingMethodTest, ExceptionsInAStep_NameThePart) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"forward", "forward: a tensor is wrong"},
      {"loss", "loss: out of memory"},
      {"backward", "backward: element 0 of tensors does not require grad"},
      {"advance", "step: exception of an unknown type"}};
  for (const auto& [where, message] : cases) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, SessionWithMethod(where, MakeTempDir("method")));
    const absl::Status first = session->Train().status();
    EXPECT_THAT(first.message(), HasSubstr(message));
    EXPECT_EQ(session->state().iteration, 2) << where;
    EXPECT_EQ(session->progress().last_checkpoint, -1) << where;
    EXPECT_EQ(session->progress().failing_hook, "") << where;
  }
}

}  // namespace
}  // namespace ssl
