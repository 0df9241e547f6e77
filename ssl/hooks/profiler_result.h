// SPDX-License-Identifier: Apache-2.0
//
// What LibTorch's recorder has recorded (profiler_hook.h), as text.
#ifndef SSL_HOOKS_PROFILER_RESULT_H_
#define SSL_HOOKS_PROFILER_RESULT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace torch::autograd::profiler {
struct ProfilerResult;
}  // namespace torch::autograd::profiler

namespace ssl {

// In the format of Chrome, by way of a temporary directory. May throw LibTorch exceptions.
absl::StatusOr<std::string> TraceOf(torch::autograd::profiler::ProfilerResult& result);

// Whether there is such a directory.
absl::Status CheckWayOfTraces();

// ProfileTable of it (profile_table.h).
std::string TableOf(const torch::autograd::profiler::ProfilerResult& result);

}  // namespace ssl

#endif  // SSL_HOOKS_PROFILER_RESULT_H_
