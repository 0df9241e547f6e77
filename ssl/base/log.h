// SPDX-License-Identifier: Apache-2.0
//
// Log lines for people: `HH:MM:SS I file.cc:12 message` on stderr, in a file, and in any
// sink that a host adds. glog does the work but is included in log.cc only, because c10
// redefines glog's macros. Thread-safe; a line is written whole or not at all.
//
//   SSL_LOG(WARNING) << "image " << path << " is broken, replaced by grey";
//   SSL_VLOG(1) << "queue holds " << size << " batches";

#ifndef SSL_BASE_LOG_H_
#define SSL_BASE_LOG_H_

#include <sstream>
#include <string>

#include "absl/strings/string_view.h"

// `severity` is INFO, WARNING or ERROR.
#define SSL_LOG(severity) SSL_INTERNAL_LOG_##severity.stream()

// Written as INFO when LogOptions::verbosity >= level; else the operands are not evaluated.
#define SSL_VLOG(level) \
  for (bool ssl_vlog_on_ = ::ssl::VlogIsOn(level); ssl_vlog_on_; ssl_vlog_on_ = false) SSL_LOG(INFO)

#define SSL_INTERNAL_LOG_INFO ::ssl::LogLine(__FILE__, __LINE__, ::ssl::LogSeverity::kInfo)
#define SSL_INTERNAL_LOG_WARNING ::ssl::LogLine(__FILE__, __LINE__, ::ssl::LogSeverity::kWarning)
#define SSL_INTERNAL_LOG_ERROR ::ssl::LogLine(__FILE__, __LINE__, ::ssl::LogSeverity::kError)

namespace ssl {

enum class LogSeverity { kInfo = 0, kWarning = 1, kError = 2 };

// Receives every line. Calls come from any thread, one at a time, and must not log.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void Write(LogSeverity severity, absl::string_view file, int line, absl::string_view message) = 0;
};

struct LogOptions {
  bool to_stderr = true;        // INFO and above; when false, ERROR only
  std::string program = "ssl";  // the name that glog reports
  std::string file;             // appended to, line by line; "" means no file
  int verbosity = 0;            // SSL_VLOG(n) is written for n <= verbosity
};

// Sets where lines go. May be called again: the last call holds. Without any call, lines of
// WARNING and above reach stderr. If the host has initialised glog itself, its console
// settings are left alone and only `file` and `verbosity` take effect. A file that cannot be
// opened is reported on stderr by one line and the run goes on.
void InitLogging(const LogOptions& options);

// The sink must outlive its registration; the caller keeps ownership.
void AddLogSink(LogSink* sink);
void RemoveLogSink(LogSink* sink);

bool VlogIsOn(int level);

// One line under construction; the destructor emits it. Used through SSL_LOG.
class LogLine {
 public:
  LogLine(const char* file, int line, LogSeverity severity) : file_(file), line_(line), severity_(severity) {}
  ~LogLine();
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;

  std::ostream& stream() { return stream_; }

 private:
  const char* file_;
  int line_;
  LogSeverity severity_;
  std::ostringstream stream_;
};

}  // namespace ssl

#endif  // SSL_BASE_LOG_H_
