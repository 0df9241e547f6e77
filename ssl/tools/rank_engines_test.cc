// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/rank_engines.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/run_progress.h"
#include "ssl/distributed/agree.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/engines/engine.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/tools/exit_codes.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kRanks = 4;

using Work = std::function<absl::Status(EngineContext&)>;

class WorkEngine : public Engine {
 public:
  explicit WorkEngine(Work work) : work_(std::move(work)) {}
  absl::StatusOr<EngineReport> Run(EngineContext& context) override {
    SSL_RETURN_IF_ERROR(work_(context));
    EngineReport report;
    report.summary = absl::StrCat("of ", context.communicator.size());
    return report;
  }
  bool trains() const override { return true; }

 private:
  const Work work_;
};

// One process with four virtual ranks, which run `work` as an engine.
class RankEnginesTest : public ::testing::Test {
 protected:
  absl::StatusOr<bool> Run(const Work& work, const WorldOptions& world) {
    return Run(work, world, directory_, *communicator_);
  }

  absl::StatusOr<bool> Run(const Work& work, const WorldOptions& world, const std::string& directory,
                           Communicator& processes) {
    Registries registries;
    SSL_RETURN_IF_ERROR(registries.engines.Register(
        "work", [&work](const ConfigNode&, const BuildContext&) -> absl::StatusOr<std::unique_ptr<Engine>> {
          return std::make_unique<WorkEngine>(work);
        }));
    ConfigNode root = ConfigNode::Map();
    root.Set("engine_name", ConfigNode::FromString("work"));
    root.Set("config", config_);
    const auto admit = [] { return absl::OkStatus(); };
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<RunRecord> record,
                         RunRecord::Open(directory, {"work"}, true, root, admit, files_, processes));
    return RunEnginesOfRanks({root, registries, files_, directory, *record, stop_, out_}, world, processes);
  }

  std::string Read(const std::string& name) {
    return files_.Read(absl::StrCat(directory_, "/", name)).value_or("(missing)");
  }

  static WorldOptions VirtualWorldOf(int64_t ranks) {
    WorldOptions world;
    world.virtual_ranks = ranks;
    return world;
  }

  // The same for all processes of a test.
  const std::string directory_ =
      absl::StrCat(::testing::TempDir(), "/", ::testing::UnitTest::GetInstance()->current_test_info()->name());
  FileSystem& files_ = PosixFileSystem();
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  StopToken stop_;
  std::ostringstream out_;
  ConfigNode config_ = ConfigNode::Map();
};

// How LibTorch chooses algorithms is its state of the process.
TEST_F(RankEnginesTest, OnAGpu_TheFastestAlgorithmsAreTakenUnlessTheyShallBeDeterministic) {
  StandinDevice::Install();
  at::Context& torch = at::globalContext();
  const auto in_a_run = [&](const char* device, bool is_deterministic) {
    config_.SetPath("MACHINE.DEVICE", ConfigNode::FromString(device));
    config_.SetPath("REPRODUCIBILITY.CUDDN_DETERMINISTIC", ConfigNode::FromBool(is_deterministic));
    std::pair<bool, bool> found;
    const auto work = [&](EngineContext&) {
      found = {torch.benchmarkCuDNN(), torch.deterministicAlgorithms()};
      return absl::OkStatus();
    };
    EXPECT_OK(Run(work, WorldOptions()));
    EXPECT_FALSE(torch.benchmarkCuDNN() || torch.deterministicAlgorithms()) << "as before";
    return found;
  };
  EXPECT_EQ(in_a_run("cpu", true), std::make_pair(false, false));
  EXPECT_EQ(in_a_run("gpu", false), std::make_pair(true, false));
  EXPECT_EQ(in_a_run("gpu", true), std::make_pair(false, true));
}

TEST_F(RankEnginesTest, EachVirtualRankRunsThem_AndRankZeroReports) {
  std::vector<int64_t> ranks;  // they take turns
  const auto work = [&](EngineContext& context) -> absl::Status {
    ranks.push_back(context.communicator.rank());
    SSL_RETURN_IF_ERROR(context.on_training_begins());
    context.results.Set("rank", ConfigNode::FromInt(context.communicator.rank()));
    return context.communicator.Barrier();
  };
  ASSERT_OK_AND_ASSIGN(const bool finished, Run(work, VirtualWorldOf(kRanks)));
  EXPECT_TRUE(finished);
  EXPECT_THAT(ranks, ::testing::UnorderedElementsAre(0, 1, 2, 3));
  EXPECT_EQ(out_.str(), "of 4\n");
  EXPECT_THAT(Read("results.json"), HasSubstr("\"rank\": 0"));
}

TEST_F(RankEnginesTest, VirtualRanksComputeWithTheirNumberOfThreads_AndTheProcessAsBefore) {
  const int before = at::get_num_threads();
  WorldOptions world = VirtualWorldOf(2);
  world.threads_per_virtual_rank = before + 1;
  const auto work = [&](EngineContext&) {
    EXPECT_EQ(at::get_num_threads(), before + 1);
    return absl::OkStatus();
  };
  EXPECT_OK(Run(work, world));
  EXPECT_EQ(at::get_num_threads(), before);
}

// Whether they agree on it, or wait for it in vain.
TEST_F(RankEnginesTest, AnErrorOfOneVirtualRank_IsThatOfTheProcess) {
  for (const bool agree : {true, false}) {
    const auto work = [agree](EngineContext& context) {
      const int64_t rank = context.communicator.rank();
      context.progress->iteration = 10 + rank;
      const absl::Status status = rank == 2 ? absl::DataLossError("torn") : absl::OkStatus();
      if (agree) return AgreeOnStatus(status, "reading", context.communicator);
      return status.ok() ? context.communicator.Barrier() : status;
    };
    EXPECT_THAT(Run(work, VirtualWorldOf(kRanks)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("virtual rank 2 of 4: torn")));
    EXPECT_THAT(Read("failure.json"),
                AllOf(HasSubstr("\"rank\": 2"), HasSubstr("\"step\": 12"), HasSubstr("\"world_size\": 4")));
  }
}

TEST_F(RankEnginesTest, AStopThatOneVirtualRankHasSeen_IsNoError) {
  const auto work = [this](EngineContext& context) {
    if (context.communicator.rank() != 3) return context.communicator.Barrier();
    stop_.Request(kStopTerminate);
    return absl::CancelledError("in a scan");
  };
  ASSERT_OK_AND_ASSIGN(const bool finished, Run(work, VirtualWorldOf(kRanks)));
  EXPECT_FALSE(finished);
  EXPECT_EQ(Read("failure.json"), "(missing)");
}

// As of a scheduler's signal to the first process of a job, while all read their data.
TEST_F(RankEnginesTest, AStopOfOneProcess_IsNoErrorOfTheOthers) {
  EXPECT_OK(ProcessWorld(2).Run([this](Communicator& processes) -> absl::Status {
    const auto work = [this](EngineContext& context) {
      absl::Status status;
      if (context.communicator.rank() == 0) {
        stop_.Request(kStopTerminate);
        status = absl::CancelledError("in a scan");
      }
      return AgreeOnStatus(status, "opening the data", context.communicator);
    };
    SSL_ASSIGN_OR_RETURN(const bool finished, Run(work, WorldOptions(), directory_, processes));
    EXPECT_FALSE(finished);
    EXPECT_EQ(Read("failure.json"), "(missing)");
    EXPECT_EQ(Read("logs/rank1_failure.json"), "(missing)");
    return absl::OkStatus();
  }));
}

TEST_F(RankEnginesTest, WhatNobodyHasAskedFor_IsAnError) {
  const auto work = [](EngineContext&) { return absl::CancelledError("nobody has asked"); };
  EXPECT_THAT(Run(work, WorldOptions()), StatusIs(absl::StatusCode::kCancelled, HasSubstr("nobody has asked")));
  EXPECT_THAT(Read("failure.json"), HasSubstr("nobody has asked"));
}

TEST_F(RankEnginesTest, AnErrorOfAnotherProcess_IsToldAsSuch) {
  EXPECT_OK(ProcessWorld(2).Run([this](Communicator& processes) -> absl::Status {
    const auto work = [](EngineContext& context) {
      const absl::Status status = context.communicator.rank() == 3 ? absl::DataLossError("torn") : absl::OkStatus();
      return AgreeOnStatus(status, "reading", context.communicator);
    };
    const absl::StatusOr<bool> done = Run(work, VirtualWorldOf(kRanks), directory_, processes);
    EXPECT_THAT(done, StatusIs(processes.rank() == 0 ? absl::StatusCode::kAborted : absl::StatusCode::kDataLoss));
    return absl::OkStatus();
  }));
}

// While it lives, the process has memory for the stack of one more thread.
class OneMoreThread {
 public:
  OneMoreThread() {
    EXPECT_EQ(pthread_getattr_default_np(&earlier_), 0);
    pthread_attr_t large;
    EXPECT_EQ(pthread_attr_init(&large), 0);
    EXPECT_EQ(pthread_attr_setstacksize(&large, kStack), 0);
    EXPECT_EQ(pthread_setattr_default_np(&large), 0);
    pthread_attr_destroy(&large);
    EXPECT_EQ(getrlimit(RLIMIT_AS, &limit_), 0);
    int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit lower = limit_;
    lower.rlim_cur = pages * sysconf(_SC_PAGESIZE) + kStack + kStack / 2;
    EXPECT_EQ(setrlimit(RLIMIT_AS, &lower), 0);
  }
  ~OneMoreThread() {
    EXPECT_EQ(setrlimit(RLIMIT_AS, &limit_), 0);
    EXPECT_EQ(pthread_setattr_default_np(&earlier_), 0);
    pthread_attr_destroy(&earlier_);
  }
  OneMoreThread(const OneMoreThread&) = delete;
  OneMoreThread& operator=(const OneMoreThread&) = delete;

 private:
  static constexpr int64_t kStack = int64_t{2} << 30;
  pthread_attr_t earlier_;
  rlimit limit_;
};

// The rank that runs only knows that the other one is not there.
TEST_F(RankEnginesTest, AVirtualRankWithoutAThread_IsToldAsThat) {
  const auto work = [](EngineContext& context) { return context.communicator.Barrier(); };
  const OneMoreThread limit;
  const absl::Status ended = Run(work, VirtualWorldOf(2)).status();
  EXPECT_THAT(ended, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("no thread for virtual rank 1: ")));
  EXPECT_EQ(ExitCodeOf(ended), kExitMemory);
  EXPECT_THAT(Read("failure.json"), HasSubstr("no thread for virtual rank 1: "));
}

TEST_F(RankEnginesTest, ProcessesThatDoNotDivideTheVirtualRanks_AreRefused) {
  EXPECT_OK(ProcessWorld(2).Run([this](Communicator& processes) -> absl::Status {
    const auto work = [](EngineContext&) { return absl::OkStatus(); };
    EXPECT_THAT(Run(work, VirtualWorldOf(1), directory_, processes), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(Run(work, VirtualWorldOf(3), directory_, processes), StatusIs(absl::StatusCode::kInvalidArgument));
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
