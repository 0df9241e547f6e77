// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/launch_check.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>
#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/available_memory.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/distributed/preview_communicator.h"
#include "ssl/distributed/store_file.h"
#include "ssl/launch/listening_socket.h"
#include "ssl/tools/dry_run.h"
#include "ssl/tools/rank_engines.h"

namespace ssl {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
constexpr int64_t kPipesOfARank = 2;       // its stdout and stderr
constexpr int64_t kOwnDescriptors = 16;    // of the launcher
constexpr int64_t kMegabytesOfARank = 64;  // a rank of its own alone, before model and data: measured, and rounded down

int64_t Limit(int resource) {
  rlimit limit = {};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0 || limit.rlim_cur > kUnlimited) {
    return kUnlimited;
  }
  return static_cast<int64_t>(limit.rlim_cur);
}

absl::Status TooMany(int64_t ranks, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(ranks, " ranks on this host (--launch=local:N, or ",
                                                 "config.DISTRIBUTED.NUM_PROC_PER_NODE) cannot be had: ", why));
}

// "<code> <message>", for the process that waits.
void Report(int fd, const absl::Status& status) {
  const std::string text = absl::StrCat(status.raw_code(), " ", status.message());
  for (absl::string_view rest = text; !rest.empty();) {
    const ssize_t written = write(fd, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) return;
    rest.remove_prefix(static_cast<size_t>(std::max<ssize_t>(0, written)));
  }
}

absl::Status ReadReport(int fd) {
  std::string text;
  char bytes[1024];
  for (ssize_t count = 0; (count = read(fd, bytes, sizeof(bytes))) > 0 || (count < 0 && errno == EINTR);) {
    if (count > 0) text.append(bytes, static_cast<size_t>(count));
  }
  const size_t space = std::min(text.find(' '), text.size());
  int code = 0;
  // One that crashed says nothing: the ranks will.
  if (!absl::SimpleAtoi(text.substr(0, space), &code) || code == 0) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(code), text.substr(space + 1));
}

absl::Status DryRunQuietly(const ConfigNode& root, const RunWorld& world, const Registries& registries) {
  LogOptions errors_only;
  errors_only.to_stderr = false;
  InitLogging(errors_only);  // the ranks say the rest
  std::ostringstream nowhere;
  return GuardTorch("looking at the run", [&] { return DryRun(root, world, registries, nowhere); });
}

absl::Status DryRunApart(const ConfigNode& root, const RunWorld& world, const Registries& registries) {
  int ends[2];
  if (pipe(ends) != 0) return absl::ResourceExhaustedError(absl::StrCat("pipe: ", std::strerror(errno)));
  const pid_t launcher = getpid();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == launcher) Report(ends[1], DryRunQuietly(root, world, registries));
    _exit(0);
  }
  const absl::Status forked =
      child > 0 ? absl::OkStatus() : absl::ResourceExhaustedError(absl::StrCat("fork: ", std::strerror(errno)));
  close(ends[1]);
  const absl::Status found = forked.ok() ? ReadReport(ends[0]) : forked;
  close(ends[0]);
  while (forked.ok() && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return found;
}

// What a start that was cut off has left is removed before the next one, by whoever starts all ranks.
absl::Status CheckStoreOf(const WorldPlace& first) {
  const bool is_removed = first.local_size == first.size && IsStoreOfEndedRanks(first.store_file).value_or(false);
  return is_removed ? absl::OkStatus() : CheckStoreFile(first.store_file);
}

}  // namespace

HostRoom HostRoom::OfThisHost() {
  HostRoom room;
  cpu_set_t set;
  room.cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
  room.free_bytes = AvailableMemoryBytes();
  room.descriptors = Limit(RLIMIT_NOFILE);
  room.processes = geteuid() == 0 ? kUnlimited : Limit(RLIMIT_NPROC);  // the kernel does not count root's
  return room;
}

absl::Status CheckRoom(int64_t ranks, const HostRoom& room) {
  if (ranks > room.processes) {
    return TooMany(ranks, absl::StrCat("a user may have ", room.processes, " processes (ulimit -u)"));
  }
  if (ranks > (room.descriptors - kOwnDescriptors) / kPipesOfARank) {
    return TooMany(ranks,
                   absl::StrCat("each takes ", kPipesOfARank, " file descriptors of this process, which may have ",
                                room.descriptors, " and needs ", kOwnDescriptors, " itself (ulimit -n)"));
  }
  const int64_t free_megabytes = room.free_bytes >> 20;
  if (ranks > free_megabytes / kMegabytesOfARank) {
    return TooMany(ranks, absl::StrCat("each takes at least ", kMegabytesOfARank, " MiB of memory, without model and ",
                                       "data, and ", free_megabytes, " MiB are free"));
  }
  return absl::OkStatus();
}

absl::Status CheckCanStart(const RunWorld& world) {
  if (!world.launches) return absl::OkStatus();
  const WorldPlace& first = world.place;
  SSL_RETURN_IF_ERROR(CheckRoom(first.local_size, HostRoom::OfThisHost()));
  if (!first.store_file.empty()) return CheckStoreOf(first);
  if (first.rank != 0 || first.size == 1 || first.port == 0) return absl::OkStatus();
  const absl::Status served = ListeningSocket::Open(first.port).status();
  if (served.ok()) return served;
  return absl::InvalidArgumentError(
      absl::StrCat("port ", first.port, ", at which rank 0 is to listen, cannot be had: ", served.message(),
                   ": choose another port for all ranks, or end what is left of an earlier run"));
}

std::string CrowdWarning(const RunWorld& world) {
  const int64_t ranks = world.place.local_size;
  const int64_t cores = HostRoom::OfThisHost().cores;
  if (!world.launches || ranks <= cores) return "";
  return absl::StrCat(ranks, " ranks on the ", cores, " cores that this process may use: they take turns, which is ",
                      "slower than a rank for each core");
}

absl::Status CheckLaunch(const ConfigNode& root, const RunWorld& world, const Registries& registries) {
  SSL_RETURN_IF_ERROR(CheckCanStart(world));
  const std::unique_ptr<Communicator> ranks = MakePreviewCommunicator(world.place.size);
  SSL_RETURN_IF_ERROR(TrainsInRunDirectory(root, {*root.Find("config"), registries, *ranks}).status());
  const std::string warning = CrowdWarning(world);
  if (warning.empty()) return absl::OkStatus();
  SSL_LOG(WARNING) << warning;
  return DryRunApart(root, world, registries);
}

}  // namespace ssl
