// SPDX-License-Identifier: Apache-2.0
//
// Exit codes of ssl_main, for scripts and schedulers. docs/exit_codes.md is the table for people.
#ifndef SSL_TOOLS_EXIT_CODES_H_
#define SSL_TOOLS_EXIT_CODES_H_

#include <string>

#include "absl/status/status.h"

namespace ssl {

inline constexpr int kExitFinished = 0;
inline constexpr int kExitFailed = 1;         // anything not named below
inline constexpr int kExitConfiguration = 2;  // command line, configuration, or a named file that is not there
// --check_config: without mistakes, but a fragment, or in need of what this program lacks.
inline constexpr int kExitIncomplete = 3;
inline constexpr int kExitData = 4;          // damaged data, or no intact checkpoint
inline constexpr int kExitStorage = 5;       // run directory: not writable, full, or in use by another process
inline constexpr int kExitMemory = 6;        // memory is exhausted
inline constexpr int kExitPeer = 7;          // another rank failed, is gone, or does not answer
inline constexpr int kExitDeviceMemory = 8;  // the accelerator's memory is exhausted
inline constexpr int kExitStopped = 75;      // stopped by a signal after saving; the same command resumes

// The code and the cause (ssl/base/error_detail.h) of `status` decide.
int ExitCodeOf(const absl::Status& status);

// What to do where the machine lacks something, to stand behind the message: "; free some space, ..."; "" otherwise.
std::string AdviceOn(const absl::Status& status);

}  // namespace ssl

#endif  // SSL_TOOLS_EXIT_CODES_H_
