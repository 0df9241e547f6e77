// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/testing/communicator_worlds.h"

#include "absl/time/time.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/distributed/virtual_world.h"

namespace ssl {
namespace {

using RankMain = std::function<absl::Status(Communicator&)>;

absl::Status RunLocal(const RankMain& rank_main) { return rank_main(*MakeLocalCommunicator()); }
absl::Status RunTwoThreads(const RankMain& rank_main) { return ThreadWorld(2, absl::Seconds(30)).Run(rank_main); }
absl::Status RunThreeThreads(const RankMain& rank_main) { return ThreadWorld(3, absl::Seconds(30)).Run(rank_main); }
absl::Status RunTwoProcesses(const RankMain& rank_main) { return ProcessWorld(2).Run(rank_main); }
absl::Status RunThreeProcesses(const RankMain& rank_main) { return ProcessWorld(3).Run(rank_main); }
absl::Status RunVirtual(const RankMain& rank_main) { return VirtualWorld(3, *MakeLocalCommunicator()).Run(rank_main); }
absl::Status RunVirtualOnProcesses(const RankMain& rank_main) {
  return ProcessWorld(2).Run([&](Communicator& processes) { return VirtualWorld(6, processes).Run(rank_main); });
}

}  // namespace

std::vector<CommunicatorWorld> CommunicatorWorlds() {
  return {{"Local", 1, RunLocal},
          {"TwoThreads", 2, RunTwoThreads},
          {"ThreeThreads", 3, RunThreeThreads},
          {"TwoProcesses", 2, RunTwoProcesses},
          {"ThreeProcesses", 3, RunThreeProcesses},
          {"ThreeVirtual", 3, RunVirtual},
          {"SixVirtualOnTwoProcesses", 6, RunVirtualOnProcesses}};
}

}  // namespace ssl
