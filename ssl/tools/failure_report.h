// SPDX-License-Identifier: Apache-2.0
//
// What a failed command leaves for scripts, failure.json: what happened, where the run stood, and which process it was.
// docs/exit_codes.md lists the members.
#ifndef SSL_TOOLS_FAILURE_REPORT_H_
#define SSL_TOOLS_FAILURE_REPORT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "ssl/core/run_progress.h"

namespace ssl {

// The member that names the processes which this rank has waited for in vain, as kDetailSilent does.
inline constexpr char kReportSilent[] = "no_answer_from";

// The folder of ranks beside rank 0, in the run directory: their logs and failure reports.
inline constexpr char kRankFolder[] = "logs";

// Whose failure it is: what is known before it happens.
struct FailureSource {
  std::string engine;       // that ran
  std::string checkpoints;  // the directory of the step_<N>
  int64_t world_size = 1;
};

// The report of `error`, as JSON.
std::string FailureReport(const absl::Status& error, const FailureSource& source, const RunProgress& progress);

// The members that do not depend on the failure, as the inside of a JSON object, for a CrashReportScope.
std::string KnownFields(const FailureSource& source, const RunProgress& progress);

}  // namespace ssl

#endif  // SSL_TOOLS_FAILURE_REPORT_H_
