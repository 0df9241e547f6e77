// SPDX-License-Identifier: Apache-2.0
//
// Log lines as a test sees them.
//
//   CapturedLog log;
//   EXPECT_OK(hook.OnStep(step.context));
//   EXPECT_THAT(log.lines, ElementsAre(HasSubstr("memory")));
#ifndef SSL_TESTING_CAPTURED_LOG_H_
#define SSL_TESTING_CAPTURED_LOG_H_

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "ssl/base/log.h"

namespace ssl {

// Collects what is logged while it lives, INFO and above. Reading it is for after the threads that log.
class CapturedLog : public LogSink {
 public:
  CapturedLog() {
    InitLogging({/*to_stderr=*/true, "test", "", 0});
    AddLogSink(this);
  }
  ~CapturedLog() override { RemoveLogSink(this); }
  void Write(LogSeverity severity, absl::string_view, int, absl::string_view message) override {
    lines.emplace_back(message);
    if (severity == LogSeverity::kWarning) warnings.emplace_back(message);
  }

  // All lines, each on one of its own.
  std::string Text() const { return absl::StrJoin(lines, "\n"); }

  std::vector<std::string> lines;
  std::vector<std::string> warnings;  // those of `lines` with that severity
};

}  // namespace ssl

#endif  // SSL_TESTING_CAPTURED_LOG_H_
