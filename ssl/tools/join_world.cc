// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/join_world.h"

#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <c10/util/Logging.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "ssl/base/crc32c.h"
#include "ssl/base/host_name.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/yaml.h"
#include "ssl/distributed/agree.h"
#include "ssl/distributed/environment_reader.h"
#include "ssl/distributed/world.h"
#include "ssl/io/file_system.h"
#include "ssl/tools/rank_threads.h"

namespace ssl {
namespace {

void SilenceLibTorchsLog() {
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = c10::GLOG_FATAL;
}

// Ranks that are started by hand know nothing of each other, and would take all cores each.
void TakeShareOfCores(const WorldPlace& place, int64_t ranks_here) {
  const Cores cores = CoresOfThisProcess();
  const std::optional<int64_t> threads =
      RankThreads(place, std::max(ranks_here, place.local_size), cores, ProcessVariable);
  if (!threads.has_value()) return;
  at::set_num_threads(static_cast<int>(*threads));
  if (ranks_here <= place.local_size || place.rank != 0) return;
  SSL_LOG(INFO)
      << ranks_here << " ranks are on this host, and " << place.source << " told rank 0 of " << place.local_size
      << ": it computes with " << *threads << " of the " << cores.online
      << " cores; OMP_NUM_THREADS says otherwise, and LOCAL_RANK with LOCAL_WORLD_SIZE which of them a rank is";
}

// NCCL reads its environment once, when it starts. As in VISSL, keys go before variables.
void SetNcclVariables(const WorldOptions& options) {
  if (options.nccl_debug) setenv("NCCL_DEBUG", "INFO", /*replace=*/1);
  if (!options.nccl_socket_threads.empty()) {
    setenv("NCCL_SOCKET_NTHREADS", options.nccl_socket_threads.c_str(), /*replace=*/1);
  }
}

// What two processes of one start have in common.
struct Start {
  std::string config;   // YAML
  std::string program;  // a checksum
  std::string host;
};

absl::StatusOr<std::string> ChecksumOf(const std::string& path) {
  SSL_ASSIGN_OR_RETURN(const MappedFile file, PosixFileSystem().Map(path));
  return absl::StrFormat("%08x", Crc32c(file.bytes()));
}

// The first leaf of `one` that `other` lacks or has another value of: its path; "" when there is none.
std::string FirstDifference(const ConfigNode& one, const ConfigNode& other, const std::string& path) {
  if (one.is_map() && other.is_map()) {
    for (const auto& [key, value] : one.entries()) {
      const ConfigNode* theirs = other.Find(key);
      if (theirs == nullptr) return JoinPath(path, key);
      std::string found = FirstDifference(value, *theirs, JoinPath(path, key));
      if (!found.empty()) return found;
    }
    for (const auto& [key, value] : other.entries()) {
      if (one.Find(key) == nullptr) return JoinPath(path, key);
    }
    return "";
  }
  if (one.items().size() != other.items().size() || !one.is_list()) return one == other ? "" : path;
  for (size_t i = 0; i < one.items().size(); ++i) {
    std::string found = FirstDifference(one.items()[i], other.items()[i], JoinPath(path, absl::StrCat(i)));
    if (!found.empty()) return found;
  }
  return "";
}

std::string ValueAt(const ConfigNode& root, const std::string& path) {
  const ConfigNode* node = root.FindPath(path);
  if (node == nullptr) return "not there";
  const std::string text = WriteYaml(*node);
  const absl::string_view line = absl::StripSuffix(text, "\n");
  return node->is_list() && !absl::StrContains(line, '\n') ? std::string(line) : node->Describe();
}

// What this rank has to say of its difference from rank 0.
absl::StatusOr<std::string> DescribeDifference(const ConfigNode& root, const Start& own, const Start& first,
                                               int64_t rank) {
  const std::string who = absl::StrCat("rank ", rank, " (on ", own.host, ")");
  if (own.program != first.program) {
    return absl::StrCat(who, " runs another build of this program than rank 0 (on ", first.host,
                        "): start the same one on every host");
  }
  SSL_ASSIGN_OR_RETURN(const ConfigNode theirs, ParseYaml(first.config, "configuration of rank 0", nullptr));
  const std::string path = FirstDifference(root, theirs, "");
  const ConfigNode* node = root.FindPath(path);
  return absl::StrCat(who, " has another configuration than rank 0 (on ", first.host, "): ", path, " is ",
                      ValueAt(root, path), node == nullptr ? "" : absl::StrCat(" (", node->location().ToString(), ")"),
                      ", on rank 0 ", ValueAt(theirs, path), "; start all ranks with the same one");
}

// The first rank whose mark is not rank 0's; 0 when all are.
absl::StatusOr<int64_t> FirstOther(int64_t mark, Communicator& communicator) {
  const at::Tensor own = at::full({1}, mark, at::kLong);
  SSL_ASSIGN_OR_RETURN(const at::Tensor all, communicator.AllGather(own));
  const at::Tensor flat = all.contiguous();
  const int64_t* marks = flat.const_data_ptr<int64_t>();
  for (int64_t rank = 1; rank < communicator.size(); ++rank) {
    if (marks[rank] != marks[0]) return rank;
  }
  return 0;
}

}  // namespace

absl::StatusOr<JoinedWorld> JoinWorld(const WorldPlace& place, const WorldOptions& options) {
  if (place.size > 1) {
    SilenceLibTorchsLog();
    SetNcclVariables(options);
  }
  const WorldTimeouts timeouts = {absl::Seconds(options.connect_seconds), absl::Seconds(options.timeout_seconds)};
  const GpuBackend backend = options.backend == "gloo" ? GpuBackend::kGloo : GpuBackend::kNccl;
  JoinedWorld world;
  SSL_ASSIGN_OR_RETURN(world.communicator, OpenWorld(place, timeouts, backend));
  const absl::StatusOr<int64_t> per_host = RanksPerHost(place, *world.communicator);
  // All find it alike, or their connections are gone.
  if (absl::IsInvalidArgument(per_host.status())) {
    return AgreeOnStatus(per_host.status(), "comparing the places of ranks", *world.communicator);
  }
  SSL_RETURN_IF_ERROR(per_host.status());
  world.shape.ranks_per_node = *per_host;
  world.shape.nodes = place.size / world.shape.ranks_per_node;
  if (place.size == 1) return world;
  SSL_ASSIGN_OR_RETURN(const int64_t ranks_here, RanksOnThisHost(*world.communicator));
  TakeShareOfCores(place, ranks_here);
  return world;
}

absl::Status CheckSameStart(const ConfigNode& root, const std::string& program, Communicator& communicator) {
  if (communicator.size() == 1) return absl::OkStatus();
  Start own;
  own.config = WriteYaml(root);
  own.host = HostName("unknown");
  SSL_ASSIGN_OR_RETURN(own.program, ChecksumOf(program));
  const uint32_t mark = Crc32c(absl::StrCat(own.program, "\n", own.config));
  SSL_ASSIGN_OR_RETURN(const int64_t other, FirstOther(mark, communicator));
  if (other == 0) return absl::OkStatus();
  Start first = own;
  for (std::string* text : {&first.config, &first.program, &first.host}) {
    SSL_RETURN_IF_ERROR(BroadcastText(0, text, communicator));
  }
  std::string message;
  if (communicator.rank() == other) {
    const absl::StatusOr<std::string> described = DescribeDifference(root, own, first, other);
    message = described.ok() ? *described : std::string(described.status().message());
  }
  SSL_RETURN_IF_ERROR(BroadcastText(other, &message, communicator));
  return AgreeOnStatus(absl::InvalidArgumentError(message), "comparing the starts", communicator);  // one says it
}

}  // namespace ssl
