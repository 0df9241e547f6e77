// SPDX-License-Identifier: Apache-2.0
//
// What a step waits for other ranks is no part's own time: a rank that is slow itself must not make others look slow.
// The tests compare times that were measured with each other, never with what the machine should manage.
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ssl/base/clock.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/perf_stats.h"
#include "ssl/core/session.h"
#include "ssl/core/testing/fake_session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/counting_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/distributed/virtual_world.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

constexpr absl::Duration kBusy = absl::Milliseconds(2);
constexpr int64_t kSteps = 20;  // of FakeConfig in a world of one; half as many in a world of two

void BeBusy() {
  const absl::Time end = Clock::Real().Now() + kBusy;
  while (Clock::Real().Now() < end) continue;
}

// Each of its broadcasts takes kBusy at least.
class SlowBroadcasts : public CountingCommunicator {
 public:
  SlowBroadcasts(Communicator& base, CollectiveCounts* counts) : CountingCommunicator(base, counts) {}
  absl::Status Broadcast(at::Tensor& tensor, int64_t root) override {
    BeBusy();
    return CountingCommunicator::Broadcast(tensor, root);
  }
};

class ModelWithBuffer : public Model {
 public:
  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override {
    return {at::cat(views).flatten(1).matmul(weight_.t())};
  }
  std::vector<at::Tensor> Features(const at::Tensor&, const std::vector<FeatureRequest>&) override { return {}; }
  std::vector<NamedParameter> Parameters() override { return {{"weight", weight_, false}}; }
  void SetTraining(bool) override {}
  void VisitState(StateVisitor& visitor) override {
    visitor.Tensor("weight", weight_);
    visitor.Tensor("buffer", buffer_);
  }

 private:
  at::Tensor weight_ = at::full({3, 16}, 0.1, at::kFloat).requires_grad_(true);
  at::Tensor buffer_ = at::full({4}, 1.0, at::kFloat);
};

// Trains, calls `on_forward` in each step, and returns the times of all steps.
absl::StatusOr<PerfStats> TrainAndMeasure(Communicator& communicator, absl::FunctionRef<void()> on_forward) {
  Registries registries = FakeRegistries();
  SSL_RETURN_IF_ERROR(registries.models.Register("with_buffer", [](const ConfigNode&, const BuildContext&) {
    return absl::StatusOr<std::unique_ptr<Model>>(std::make_unique<ModelWithBuffer>());
  }));
  ConfigNode config = FakeConfig("");
  config.SetPath("MODEL.BASE_MODEL_NAME", ConfigNode::FromString("with_buffer"));
  config.SetPath("DISTRIBUTED.BROADCAST_BUFFERS", ConfigNode::FromBool(true));
  SessionOptions options;
  options.communicator = &communicator;
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(config, registries, std::move(options)));
  std::vector<std::string> events;
  PerfStats measured;
  auto busy = std::make_unique<RecordingHook>("busy", HookStage::kObserve, &events);
  busy->At("OnForward", [&](StepContext&) {
    on_forward();
    return absl::OkStatus();
  });
  auto measure = std::make_unique<RecordingHook>("measure", HookStage::kObserve, &events);
  measure->At("OnStep", [&](StepContext& context) {
    measured = context.perf_stats;
    return absl::OkStatus();
  });
  SSL_RETURN_IF_ERROR(session->AddHook(std::move(busy)));
  SSL_RETURN_IF_ERROR(session->AddHook(std::move(measure)));
  SSL_RETURN_IF_ERROR(session->Train().status());
  return measured;
}

// All that StepTotal is made of, but for what hooks do.
double SecondsOfParts(const PerfStats& stats) {
  double seconds = 0.0;
  for (int part = 0; part < static_cast<int>(StepPart::kStepTotal); ++part) {
    seconds += stats.Seconds(static_cast<StepPart>(part));
  }
  return seconds;
}

TEST(SessionWaits, TheBroadcastOfBuffers_IsNotTheForwardPass) {
  ThreadWorld world(2, absl::Seconds(30));
  std::array<PerfStats, 2> stats;
  ASSERT_OK(world.Run([&](Communicator& communicator) -> absl::Status {
    CollectiveCounts counts;
    SlowBroadcasts slow(communicator, &counts);
    SSL_ASSIGN_OR_RETURN(stats[communicator.rank()], TrainAndMeasure(slow, [] {}));
    return absl::OkStatus();
  }));
  for (const PerfStats& of_rank : stats) {
    ASSERT_EQ(of_rank.steps(), kSteps / 2);
    EXPECT_GE(of_rank.Seconds(StepPart::kWaitForRanks), kSteps / 2 * absl::ToDoubleSeconds(kBusy));
    EXPECT_LE(SecondsOfParts(of_rank), of_rank.Seconds(StepPart::kStepTotal)) << "some time counts twice:\n"
                                                                              << of_rank.Table();
  }
}

// They never work at the same time, so that all their work fits into the time of the run.
TEST(SessionWaits, WaitingForOnesTurnAmongVirtualRanks_IsNoWork) {
  constexpr int64_t kRanks = 2;
  const std::unique_ptr<Communicator> process = MakeLocalCommunicator();
  std::array<PerfStats, kRanks> stats;
  const absl::Time begin = Clock::Real().Now();
  ASSERT_OK(VirtualWorld(kRanks, *process).Run([&](Communicator& communicator) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(stats[communicator.rank()], TrainAndMeasure(communicator, &BeBusy));
    return absl::OkStatus();
  }));
  const double run = absl::ToDoubleSeconds(Clock::Real().Now() - begin);
  double work = 0.0;
  for (const PerfStats& of_rank : stats) {
    work += of_rank.Seconds(StepPart::kStepTotal) - of_rank.Seconds(StepPart::kWaitForRanks);
  }
  EXPECT_LE(work, run);
  EXPECT_GE(work, kSteps * absl::ToDoubleSeconds(kBusy)) << "what ranks do themselves is work";
}

}  // namespace
}  // namespace ssl
