// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <glog/logging.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace ssl {
namespace {

// Where lines go. One per process, as stderr and glog are; only this file knows it.
struct LogState {
  std::mutex mutex;  // of all that follows but the last; held by the functions that take a state
  std::vector<LogSink*> sinks;
  FILE* file = nullptr;
  bool glog_is_ours = false;
  LogSeverity console_threshold = LogSeverity::kWarning;
  std::string program;  // glog keeps a pointer into it
  std::atomic<int> verbosity{0};
};

// Never destroyed: other objects log while the process ends.
LogState& State() {
  static LogState* state = new LogState;
  return *state;
}

google::LogSeverity GlogSeverity(LogSeverity severity) {
  switch (severity) {
    case LogSeverity::kInfo:
      return google::GLOG_INFO;
    case LogSeverity::kWarning:
      return google::GLOG_WARNING;
    case LogSeverity::kError:
      break;
  }
  return google::GLOG_ERROR;
}

absl::string_view BaseName(absl::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

// "HH:MM:SS I file.cc:12 message"
std::string FormatLine(LogSeverity severity, absl::string_view file, int line, absl::string_view message,
                       absl::Time now) {
  const absl::string_view letter = absl::string_view("IWE").substr(static_cast<int>(severity), 1);
  return absl::StrCat(absl::FormatTime("%H:%M:%S", now, absl::LocalTimeZone()), " ", letter, " ", BaseName(file), ":",
                      line, " ", message);
}

// A host that initialised glog gets plain messages, to which its glog adds its own prefix.
void WriteToGlog(LogState& state, const char* file, int line, LogSeverity severity, absl::string_view message,
                 absl::string_view formatted) {
  const bool host_has_glog = !state.glog_is_ours && google::IsGoogleLoggingInitialized();
  if (!host_has_glog && severity < state.console_threshold) return;
  const absl::string_view text = state.glog_is_ours ? formatted : message;
  google::LogMessage(file, line, GlogSeverity(severity)).stream() << text;
}

void Emit(LogState& state, const char* file, int line, LogSeverity severity, absl::string_view message) {
  const absl::Time now = absl::Now();
  const std::string formatted = FormatLine(severity, file, line, message, now);
  WriteToGlog(state, file, line, severity, message, formatted);
  if (state.file != nullptr) {
    // Who reads a file may do so days later; a console has no room for dates.
    const std::string date = absl::FormatTime("%Y-%m-%d", now, absl::LocalTimeZone());
    fprintf(state.file, "%s %s\n", date.c_str(), formatted.c_str());
    fflush(state.file);
  }
  for (LogSink* sink : state.sinks) sink->Write(severity, file, line, message);
}

void InitGlog(LogState& state, const LogOptions& options) {
  if (!state.glog_is_ours) {
    if (google::IsGoogleLoggingInitialized()) return;  // the host's console settings hold
    state.program = options.program;
    google::InitGoogleLogging(state.program.c_str());
    state.glog_is_ours = true;
  }
  FLAGS_logtostderr = true;  // else glog writes files of its own under /tmp
  FLAGS_log_prefix = false;
  state.console_threshold = options.to_stderr ? LogSeverity::kInfo : LogSeverity::kError;
}

void OpenFile(LogState& state, const std::string& path) {
  if (state.file != nullptr) fclose(state.file);
  state.file = nullptr;
  if (path.empty()) return;
  // As ssl/io opens its outputs, which this package may not use: no link is followed, no pipe waited for.
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (fd >= 0) state.file = fdopen(fd, "a");
  if (state.file != nullptr) return;
  Emit(state, __FILE__, __LINE__, LogSeverity::kError,
       absl::StrCat("log file ", path, " cannot be opened: ", strerror(errno), "; lines go to stderr only"));
}

}  // namespace

void InitLogging(const LogOptions& options) {
  LogState& state = State();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.verbosity = options.verbosity;
  InitGlog(state, options);
  OpenFile(state, options.file);
}

void AddLogSink(LogSink* sink) {
  LogState& state = State();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.sinks.push_back(sink);
}

void RemoveLogSink(LogSink* sink) {
  LogState& state = State();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.sinks.erase(std::remove(state.sinks.begin(), state.sinks.end(), sink), state.sinks.end());
}

bool VlogIsOn(int level) { return level <= State().verbosity.load(std::memory_order_relaxed); }

LogLine::~LogLine() {
  LogState& state = State();
  const std::lock_guard<std::mutex> lock(state.mutex);
  Emit(state, file_, line_, severity_, stream_.str());
}

}  // namespace ssl
