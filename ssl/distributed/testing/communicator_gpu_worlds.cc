// SPDX-License-Identifier: Apache-2.0
#include <ATen/detail/CUDAHooksInterface.h>

#include "absl/time/time.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/nccl_communicator.h"
#include "ssl/distributed/testing/communicator_worlds.h"
#include "ssl/distributed/testing/gpu_communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/distributed/virtual_world.h"

namespace ssl {
namespace {

using RankMain = std::function<absl::Status(Communicator&)>;

absl::Status OnFirstGpu(Communicator& communicator, const RankMain& rank_main) {
  GpuCommunicator on_gpu(communicator, at::Device(at::kCUDA, 0));
  return rank_main(on_gpu);
}

RankMain OnFirstGpu(const RankMain& rank_main) {
  return [&rank_main](Communicator& communicator) { return OnFirstGpu(communicator, rank_main); };
}

absl::Status RunLocal(const RankMain& rank_main) { return OnFirstGpu(*MakeLocalCommunicator(), rank_main); }
absl::Status RunThreads(const RankMain& rank_main) {
  return ThreadWorld(3, absl::Seconds(30)).Run(OnFirstGpu(rank_main));
}
absl::Status RunVirtual(const RankMain& rank_main) {
  return VirtualWorld(3, *MakeLocalCommunicator()).Run(OnFirstGpu(rank_main));
}
absl::Status RunGloo(const RankMain& rank_main) { return ProcessWorld(3).Run(OnFirstGpu(rank_main)); }

// Each rank on a GPU of its own.
absl::Status RunNccl(int64_t size, const RankMain& rank_main) {
  return ProcessWorld(size).RunWithOptions([&](const GlooOptions& options) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> communicator, MakeNcclCommunicator(options));
    GpuCommunicator on_gpu(*communicator, at::Device(at::kCUDA, static_cast<at::DeviceIndex>(options.rendezvous.rank)));
    return rank_main(on_gpu);
  });
}

}  // namespace

std::vector<CommunicatorWorld> CommunicatorWorlds() {
  std::vector<CommunicatorWorld> worlds = {
      {"Local", 1, RunLocal},
      {"ThreeThreads", 3, RunThreads},
      {"ThreeVirtual", 3, RunVirtual},
      {"ThreeProcessesOverGloo", 3, RunGloo},
      {"OneOverNccl", 1, [](const RankMain& rank_main) { return RunNccl(1, rank_main); }}};
  if (at::detail::getCUDAHooks().deviceCount() >= 2) {
    worlds.push_back({"TwoOverNccl", 2, [](const RankMain& rank_main) { return RunNccl(2, rank_main); }});
  }
  return worlds;
}

}  // namespace ssl
