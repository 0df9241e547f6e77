// SPDX-License-Identifier: Apache-2.0
//
// Log lines as a test sees them.
//
//   CapturedLog log;
//   EXPECT_OK(hook.OnStep(step.context));
//   EXPECT_THAT(log.lines, ElementsAre(HasSubstr("memory")));
#ifndef SSL_HOOKS_TESTING_CAPTURED_LOG_H_
#define SSL_HOOKS_TESTING_CAPTURED_LOG_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ssl/base/log.h"

namespace ssl {

// Collects what is logged while it lives, INFO and above. Reading `lines` is for after the threads that log.
class CapturedLog : public LogSink {
 public:
  CapturedLog() {
    InitLogging({/*to_stderr=*/true, "test", "", 0});
    AddLogSink(this);
  }
  ~CapturedLog() override { RemoveLogSink(this); }
  void Write(LogSeverity, absl::string_view, int, absl::string_view message) override { lines.emplace_back(message); }

  std::vector<std::string> lines;
};

}  // namespace ssl

#endif  // SSL_HOOKS_TESTING_CAPTURED_LOG_H_
