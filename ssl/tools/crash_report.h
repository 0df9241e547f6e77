// SPDX-License-Identifier: Apache-2.0
//
// The failure report of a process that cannot write one any more: a fatal signal, an exception that nobody caught, a
// second stop signal. One per process; armed while a command runs in its directory.
//
//   CrashReportScope scope(file, fields, "/runs/a/checkpoints", progress);
//   ...                                    // WriteCrashReport may be called by any signal handler
#ifndef SSL_TOOLS_CRASH_REPORT_H_
#define SSL_TOOLS_CRASH_REPORT_H_

#include <string>

#include "ssl/core/run_progress.h"
#include "ssl/tools/report_file.h"

namespace ssl {

class CrashReportScope {
 public:
  // file: the report. fields: members that are known before, as the inside of a JSON object ("\"rank\":
  // 0, ..."). checkpoints: the directory of the step_<N>. With a text that does not fit its buffer (4 KiB) there is no
  // report. References outlive the scope.
  CrashReportScope(const ReportFile& file, const std::string& fields, const std::string& checkpoints,
                   const RunProgress& progress);
  // A report is written no more.
  ~CrashReportScope();
  CrashReportScope(const CrashReportScope&) = delete;
  CrashReportScope& operator=(const CrashReportScope&) = delete;
};

// Writes the report: the fields, `message`, the signal, and where the run stands. Replaces the file in one step. Does
// nothing outside a CrashReportScope, and nothing the second time. Async-signal-safe. What it reads of `progress` may
// be a step old or new when another thread changes it.
void WriteCrashReport(const char* message, int signal_number) noexcept;

// The same of a process that ends with kExitMemory, because an exception of exhausted memory was caught by nobody.
void WriteMemoryReport(const char* message) noexcept;

// Whether the run of the present scope is still being built: there is nothing to save then. Async-signal-safe.
bool RunIsBuilding() noexcept;

}  // namespace ssl

#endif  // SSL_TOOLS_CRASH_REPORT_H_
