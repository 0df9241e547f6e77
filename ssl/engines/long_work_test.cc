// SPDX-License-Identifier: Apache-2.0
//
// What rank 0 alone reads of an earlier training, for longer than the others would wait for it in an operation.
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/session.h"
#include "ssl/distributed/testing/long_work.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/testing/full_tune_run.h"
#include "ssl/engines/testing/simclr_run.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

// Of the operations of whole trainings, on a machine that does other work.
constexpr absl::Duration kPatience = absl::Seconds(20);

using LongFullTuneWorkTest = FullTuneRun;
using LongEstimateWorkTest = SimclrRun;

// Takes long to read one file.
class SlowFileSystem : public FaultFileSystem {
 public:
  SlowFileSystem(std::string slow, const std::string& root, LongWork* work, const Communicator& communicator)
      : FaultFileSystem(PosixFileSystem(), root), slow_(std::move(slow)), work_(*work), communicator_(communicator) {}

  absl::StatusOr<std::string> Read(const std::string& path) override {
    if (absl::EndsWith(path, slow_)) SSL_RETURN_IF_ERROR(work_.Do(communicator_));
    return FaultFileSystem::Read(path);
  }

 private:
  const std::string slow_;
  LongWork& work_;
  const Communicator& communicator_;
};

// `run` lets rank 0 do the work.
void ExpectIsWaitedFor(absl::FunctionRef<absl::Status(Communicator&, LongWork* work)> run) {
  LongWork work;
  EXPECT_OK(ThreadWorld(2, kPatience).Run([&](Communicator& base) {
    CountingCommunicator counting(base, &work.counts());
    Communicator& communicator = base.rank() == 1 ? static_cast<Communicator&>(counting) : base;
    const absl::Status status = run(communicator, &work);
    work.End(communicator);
    return status;
  }));
  EXPECT_GE(work.met(), LongWork::kMeetings);
}

TEST_F(LongFullTuneWorkTest, ReadingTheFineTuningThatIsThere) {
  SaveCheckpoint();
  config_.SetPath("FULL_TUNE.BATCH_SIZE", ConfigNode::FromInt(8));
  ASSERT_OK(RunOnRanks(2, [](const EngineReport&) {}));
  ExpectIsWaitedFor([&](Communicator& communicator, LongWork* work) {
    SlowFileSystem files("/full_tune/checkpoints/step_6/MANIFEST.json", directory_, work, communicator);
    return RunRank(communicator, files).status();
  });
}

TEST_F(LongEstimateWorkTest, ReadingTheTrainingThatIsThere) {
  Set("DATA.TRAIN.BATCHSIZE_PER_REPLICA", "8");
  Set("DISTRIBUTED.NUM_PROC_PER_NODE", "2");
  Set("OPTIMIZER.num_epochs", "1");
  Set("TEST_MODEL", "False");
  ASSERT_OK_AND_ASSIGN(config_, ResolveConfig(config_, registries_));
  ASSERT_OK(ThreadWorld(2, kPatience).Run([&](Communicator& communicator) -> absl::Status {
    SessionOptions options;
    options.communicator = &communicator;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         Session::Create(config_, registries_, std::move(options)));
    return session->Train().status();
  }));
  ExpectIsWaitedFor([&](Communicator& communicator, LongWork* work) -> absl::Status {
    SlowFileSystem files("/checkpoints/step_3/MANIFEST.json", directory_, work, communicator);
    ConfigNode results = ConfigNode::Map();
    EngineContext context{config_, registries_, communicator, stop_, files, directory_, results};
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                         registries_.engines.Make("estimate", config_, MakeBuildContext(context, /*seed=*/0)));
    SSL_ASSIGN_OR_RETURN(const EngineReport report, engine->Run(context));
    EXPECT_EQ(report.summary, "estimate: nothing is left to train, 3 updates of 3 are done");
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace ssl
