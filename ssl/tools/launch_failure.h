// SPDX-License-Identifier: Apache-2.0
//
// What a launcher of ranks leaves in the run directory when they failed: the report of the rank that failed first, also
// of one that could not write its own.
#ifndef SSL_TOOLS_LAUNCH_FAILURE_H_
#define SSL_TOOLS_LAUNCH_FAILURE_H_

#include <cstdint>
#include <string>

#include "ssl/io/file_system.h"
#include "ssl/launch/local_launcher.h"

namespace ssl {

// What every training in `run_directory` has saved: the run's own, and those in folders of it, such as a fine-tuning.
SavedProgress SavedIn(const std::string& run_directory, FileSystem& file_system);

// Whether the report that the rank `end` of `command` has left names the process `pid` of this host among those that it
// has waited for in vain.
bool HasWaitedInVain(const RankEnd& end, int64_t pid, const std::string& run_directory, const std::string& command,
                     FileSystem& file_system);

// Whether the process was the last to lock the directory.
bool HasLocked(int64_t pid, const std::string& run_directory, FileSystem& file_system);

// Why a training of `outcome` would begin anew if its ranks started again: rank 0 has not locked what lies there now,
// and either the first failure was of the run directory (exit code 5) or rank 0 was seen to have locked it before
// (`had_locked`), so that it was removed or replaced since. "" otherwise.
std::string LostDirectory(const LaunchOutcome& outcome, bool had_locked, const std::string& run_directory,
                          FileSystem& file_system);

// Why ranks that start again would find no room for what they save, as those of `outcome` have: the first failure's
// report names such an error, or the file system of the directory is full, so that there is no report. "" otherwise.
std::string NoRoom(const LaunchOutcome& outcome, const std::string& run_directory, const std::string& command,
                   FileSystem& file_system);

// Writes the report of `outcome.first_failure`, or of the lowest rank that a user's second signal has ended before it
// had saved, as the failure report of `command` (ssl/engines/run_files.h), with docs/exit_codes.md's members and
// `restarts`: what that rank has said of itself, or else what is known of its end, with the step at which the others
// noticed and, of one that hung, what they said. Best effort. Nothing where these ranks never had the directory, such
// as when another run uses it, nor where they only lost a connection to ranks of another host, whose launcher knows
// more: when rank 0 is there, or the report names a rank that is none of these. Nothing after a mistake (exit code 2),
// which the ranks report where it is due, nor where nothing has failed.
void WriteLaunchFailure(const std::string& run_directory, const std::string& command, int64_t world_size,
                        const LaunchOutcome& outcome, FileSystem& file_system);

// Removes what ranks of `outcome` have left as the failure report of `command`: they lost one that was stopped, and no
// rank has failed. That of an earlier start stays: this one may have ended before it got so far. Best effort.
void RemoveLaunchFailure(const std::string& run_directory, const std::string& command, const LaunchOutcome& outcome,
                         FileSystem& file_system);

}  // namespace ssl

#endif  // SSL_TOOLS_LAUNCH_FAILURE_H_
