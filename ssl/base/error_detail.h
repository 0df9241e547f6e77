// SPDX-License-Identifier: Apache-2.0
//
// What is known of an error beyond its code and message, for failure reports and exit codes: absl's codes do not tell
// exhausted memory from a full disk, nor a dead rank from a lock that is held. Kept as payloads, so it survives
// Annotate. Pure functions; thread-safe.
//
//   return WithDetail(absl::ResourceExhaustedError("out of memory"), kDetailCause, kCauseMemory);
//   if (DetailOf(status, kDetailCause) == kCauseMemory) ...
#ifndef SSL_BASE_ERROR_DETAIL_H_
#define SSL_BASE_ERROR_DETAIL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ssl {

// Keys.
inline constexpr char kDetailErrno[] = "ssl/errno";          // a number of errno.h
inline constexpr char kDetailException[] = "ssl/exception";  // the type of a C++ exception
inline constexpr char kDetailCause[] = "ssl/cause";          // one of the causes below

inline constexpr char kDetailMemory[] = "ssl/memory";  // of kCauseMemory: whose, when it is not the host's

// Causes.
inline constexpr char kCauseMemory[] = "memory";  // memory is exhausted
inline constexpr char kCausePeer[] = "peer";      // another rank failed, is gone, or does not answer

// Memories.
inline constexpr char kMemoryOfDevice[] = "device";  // an accelerator's

// `status` with the detail; OK stays as it is.
absl::Status WithDetail(absl::Status status, absl::string_view key, absl::string_view value);

// "" when the error has no such detail.
std::string DetailOf(const absl::Status& status, absl::string_view key);

}  // namespace ssl

#endif  // SSL_BASE_ERROR_DETAIL_H_
