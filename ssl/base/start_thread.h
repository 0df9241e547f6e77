// SPDX-License-Identifier: Apache-2.0
//
// Starts a thread where the system may have none left, which the standard library tells by an exception.
//
//   SSL_RETURN_IF_ERROR(StartThread("a background task", [this] { Run(); }, &thread_));
#ifndef SSL_BASE_START_THREAD_H_
#define SSL_BASE_START_THREAD_H_

#include <exception>
#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ssl {

// `thread` is one that does not run. ResourceExhausted "no thread for <what>: ..." with kCauseMemory, because it is not
// a disk that is full: a process or its user may have no more threads, or there is no memory for a stack.
absl::Status StartThread(absl::string_view what, std::function<void()> run, std::thread* thread);

// That error, of an exception with which a thread could not be started.
absl::Status NoThreadError(absl::string_view what, const std::exception& error);

}  // namespace ssl

#endif  // SSL_BASE_START_THREAD_H_
