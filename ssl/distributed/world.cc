// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/world.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/gloo_communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/nccl_communicator.h"
#include "ssl/distributed/network.h"
#include "ssl/distributed/process_identity.h"

namespace ssl {
namespace {

constexpr int64_t kOwnDescriptors = 12;  // of the store and the first connections, beside one for each rank

RendezvousOptions OptionsOf(const WorldPlace& place, absl::Duration connect_timeout) {
  RendezvousOptions options;
  options.rank = place.rank;
  options.size = place.size;
  options.file = place.store_file;
  if (options.file.empty()) {
    options.host = place.host;
    options.port = place.port;
    options.listening_socket = place.listening_socket;
    options.store_is_served = place.store_is_served;
  }
  // A file still holds what the ranks of an earlier start said. Our launcher, which counts for all ranks, is the only
  // one that starts ranks of a file again; torchrun's agents count apart on each host, and a store of rank 0 ends with
  // it.
  options.prefix = place.store_file.empty() ? "ssl" : absl::StrCat("ssl/", place.restart_count);
  options.connect_timeout = connect_timeout;
  return options;
}

constexpr int64_t kMostLocalRanks = int64_t{1} << 21;  // more than a world may have

// How many ranks have each number on their host, by how many that host has as they say.
using HostLayout = std::map<int64_t, std::map<int64_t, int64_t>>;

// A host of N ranks has one of each number. Which of them are on one machine does not matter: tasks may have containers
// of their own, and a machine may stand for several hosts.
absl::Status CheckWholeHosts(const HostLayout& ranks) {
  for (const auto& [size, with_number] : ranks) {
    for (int64_t number = 0; number < size; ++number) {
      const auto found = with_number.find(number);
      const int64_t count = found == with_number.end() ? 0 : found->second;
      const auto& [some_number, some_count] = *with_number.begin();
      if (count == some_count) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("ranks contradict each other about their hosts: with LOCAL_WORLD_SIZE ", size, " there are ",
                       some_count, " of LOCAL_RANK ", some_number, " and ", count, " of LOCAL_RANK ", number,
                       ", expected as many of each; srun and mpirun have other names for both"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string MeetingPlace(const WorldPlace& place) {
  if (!place.store_file.empty()) return place.store_file;
  return place.port == 0 ? "a free port of this host" : absl::StrCat(place.host, ":", place.port);
}

absl::StatusOr<std::unique_ptr<Communicator>> OpenWorld(const WorldPlace& place, const WorldTimeouts& timeouts,
                                                        GpuBackend backend) {
  if (place.size == 1) return MakeLocalCommunicator();
  // Of c10d's and Gloo's own threads and sockets, those that fail for want of a descriptor end the process without a
  // word, or wait for the timeout.
  const bool serves = place.rank == 0 && place.store_file.empty() && !place.store_is_served;
  SSL_RETURN_IF_ERROR(CheckDescriptors(kOwnDescriptors + (serves ? 2 : 1) * place.size));
  GlooOptions options;
  options.rendezvous = OptionsOf(place, timeouts.connect);
  options.timeout = timeouts.operation;
  return backend == GpuBackend::kNccl && HasNccl() ? MakeNcclCommunicator(options) : MakeGlooCommunicator(options);
}

absl::StatusOr<int64_t> RanksPerHost(const WorldPlace& place, Communicator& communicator) {
  const at::Tensor own = at::full({1}, place.local_size * kMostLocalRanks + place.local_rank, at::kLong);
  SSL_ASSIGN_OR_RETURN(const at::Tensor all, communicator.AllGather(own));
  const at::Tensor flat = all.contiguous();
  const int64_t* numbers = flat.const_data_ptr<int64_t>();
  HostLayout ranks;
  for (int64_t i = 0; i < flat.numel(); ++i) ++ranks[numbers[i] / kMostLocalRanks][numbers[i] % kMostLocalRanks];
  SSL_RETURN_IF_ERROR(CheckWholeHosts(ranks));
  const int64_t size = ranks.begin()->first;
  return ranks.size() == 1 && place.size % size == 0 ? size : 1;
}

absl::StatusOr<int64_t> RanksOnThisHost(Communicator& communicator) {
  const std::string scope = ProcessIdentity::OfThisProcess().scope;
  // Of one program, on all ranks the same number for the same text.
  const auto mark = static_cast<int64_t>(std::hash<std::string>()(scope));
  const at::Tensor own = at::full({1}, mark, at::kLong);
  SSL_ASSIGN_OR_RETURN(const at::Tensor all, communicator.AllGather(own));
  const at::Tensor flat = all.contiguous();
  const int64_t* marks = flat.const_data_ptr<int64_t>();
  return scope.empty() ? 1 : std::count(marks, marks + flat.numel(), mark);
}

}  // namespace ssl
