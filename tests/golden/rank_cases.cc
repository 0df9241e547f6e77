// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/rank_cases.h"

#include <cstdint>
#include <exception>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl::golden {
namespace {

constexpr int64_t kProcesses = 2;

int64_t RanksOf(const Case& golden_case) { return golden_case.IntIn("world", 1, 16); }

// The ops of the category that a test leaves to others.
std::set<std::string> OtherOps(const std::map<std::string, RankCheck>& checks) {
  std::set<std::string> ops = {"barlow_twins_loss", "deepclusterv2_cluster_memory", "dino_loss",
                               "moco_infonce",      "simclr_info_nce_loss",         "sinkhorn",
                               "swav_loss"};
  for (const auto& [op, check] : checks) ops.erase(op);
  return ops;
}

// What a case lacks throws, which would end the program in a rank's thread. The others wait for such a rank in vain.
absl::Status RunRank(const RankCheck& check, const Case& golden_case, Communicator& communicator) {
  try {
    check(golden_case, absl::StrCat("rank", communicator.rank(), "."), communicator);
  } catch (const std::exception& error) {
    return absl::NotFoundError(error.what());
  }
  return absl::OkStatus();
}

CaseRunner AsThreads(const RankCheck& check) {
  return [check](const Case& golden_case) {
    ThreadWorld world(RanksOf(golden_case), absl::Seconds(60));
    EXPECT_OK(world.Run([&](Communicator& communicator) { return RunRank(check, golden_case, communicator); }));
  };
}

CaseRunner AsRank(const RankCheck& check, Communicator& communicator) {
  return [&](const Case& golden_case) { EXPECT_OK(RunRank(check, golden_case, communicator)); };
}

std::string OfAnotherWorld(const Case& golden_case) {
  const int64_t ranks = RanksOf(golden_case);
  return ranks == kProcesses ? "" : absl::StrCat("a world of ", ranks);
}

}  // namespace

void RunAsThreads(const std::map<std::string, RankCheck>& checks) {
  std::map<std::string, CaseRunner> runners;
  for (const auto& [op, check] : checks) runners.emplace(op, AsThreads(check));
  RunCategory("dist", runners, OtherOps(checks));
}

void RunAsProcesses(const std::map<std::string, RankCheck>& checks) {
  EXPECT_OK(ProcessWorld(kProcesses).Run([&checks](Communicator& communicator) {
    std::map<std::string, CaseRunner> runners;
    for (const auto& [op, check] : checks) runners.emplace(op, AsRank(check, communicator));
    RunCategory("dist", runners, OtherOps(checks), &OfAnotherWorld);
    return absl::OkStatus();
  }));
}

}  // namespace ssl::golden
