// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/launch_ranks.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/check/named_components.h"
#include "ssl/distributed/store_file.h"
#include "ssl/engines/run_files.h"
#include "ssl/io/file_system.h"
#include "ssl/tools/directory_in_use.h"
#include "ssl/tools/exit_codes.h"
#include "ssl/tools/launch_failure.h"
#include "ssl/tools/writable_directory.h"

namespace ssl {
namespace {

// Of ranks that are all started here, and have ended all: the same command goes on.
absl::StatusOr<bool> RemoveLeftStore(const WorldPlace& first) {
  if (first.store_file.empty() || first.local_size != first.size) return false;
  return RemoveStoreOfEndedRanks(first.store_file);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ThisProgram>> ThisProgram::Open() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return absl::NotFoundError(absl::StrCat("/proc/self/exe cannot be read: ", error.message()));
  return absl::WrapUnique(new ThisProgram(path.string(), open("/proc/self/exe", O_RDONLY | O_CLOEXEC)));
}

ThisProgram::ThisProgram(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

ThisProgram::~ThisProgram() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<LaunchOutcome> LaunchRanks(const ThisProgram& program, const RunWorld& world, const ConfigNode& root,
                                          const std::vector<std::string>& arguments, int64_t restarts,
                                          const StopToken& stop) {
  const std::string directory = root.FindPath("config.CHECKPOINT.DIR")->text();
  const std::string command = Trains(root) ? kTrainCommand : absl::StrJoin(EngineNames(root), "_");
  LaunchOptions options;
  options.command = {program.path()};
  options.program_fd = program.fd();
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  options.first = world.place;
  options.pass_listening_socket = world.place.port == 0 && world.place.store_file.empty();
  options.max_restarts = restarts;
  options.progress = [&directory] { return SavedIn(directory, PosixFileSystem()); };
  const bool locks = Trains(root);  // evaluations lock nothing
  bool had_locked = false;          // rank 0 of this start
  if (locks) {
    options.on_output = [&](int64_t rank, int64_t pid) {
      if (rank == 0 && !had_locked) had_locked = HasLocked(pid, directory, PosixFileSystem());
    };
  }
  std::string lost;
  options.obstacle = [&] {
    absl::Status is_usable = CheckNotInUse(root);
    is_usable.Update(CheckCanBeWritten(root));
    return is_usable.ok() ? lost : std::string(is_usable.message());
  };
  options.waited_in_vain = [&](const RankEnd& end, int64_t pid) {
    return HasWaitedInVain(end, pid, directory, command, PosixFileSystem());
  };
  options.is_stopped_before = [&stop] { return stop.requested(); };
  options.stopped_code = kExitStopped;
  options.mistake_code = kExitConfiguration;
  options.damage_code = kExitData;
  options.peer_code = kExitPeer;
  SSL_LOG(INFO) << Describe(world);
  SSL_ASSIGN_OR_RETURN(const bool removed, RemoveLeftStore(world.place));
  if (removed) SSL_LOG(INFO) << "removed " << world.place.store_file << ", at which ranks met that have ended";
  // At each failure: the ranks of the next start may be stopped before they have looked at what is there.
  options.on_failure = [&](const LaunchOutcome& outcome) {
    WriteLaunchFailure(directory, command, world.place.size, outcome, PosixFileSystem());
    lost = NoRoom(outcome, directory, command, PosixFileSystem());
    if (!locks) return;
    if (lost.empty()) lost = LostDirectory(outcome, had_locked, directory, PosixFileSystem());
    had_locked = false;
  };
  SSL_ASSIGN_OR_RETURN(LaunchOutcome outcome, LaunchLocalRanks(options));
  // Of two starts at the same moment, one finds the port of the other taken and its directory not locked yet.
  if (outcome.exit_code == kExitConfiguration) SSL_RETURN_IF_ERROR(CheckNotInUse(root));
  if (outcome.first_failure.has_value()) {
    SSL_LOG(ERROR) << "the first failure: " << DescribeEnd(*outcome.first_failure);
  } else if (outcome.exit_code == kExitFinished || outcome.exit_code == kExitStopped) {
    RemoveLaunchFailure(directory, command, outcome, PosixFileSystem());
    SSL_RETURN_IF_ERROR(RemoveLeftStore(world.place).status());
  } else {  // a second signal has ended ranks before they had saved
    WriteLaunchFailure(directory, command, world.place.size, outcome, PosixFileSystem());
  }
  return outcome;
}

}  // namespace ssl
