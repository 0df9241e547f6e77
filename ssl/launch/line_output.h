// SPDX-License-Identifier: Apache-2.0
//
// What several processes print, on one terminal: whole lines only, each with its writer's name before it. Not
// thread-safe.
//
//   OutputStream out(STDOUT_FILENO);
//   LineSplitter lines("[3] ");
//   lines.Append("epoch 1\nepo", out.pending());  // "[3] epoch 1\n"
#ifndef SSL_LAUNCH_LINE_OUTPUT_H_
#define SSL_LAUNCH_LINE_OUTPUT_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace ssl {

// Cuts one stream of bytes into lines.
class LineSplitter {
 public:
  // A line that grows longer is cut into several.
  static constexpr size_t kMaxLine = size_t{64} << 10;

  explicit LineSplitter(std::string prefix) : prefix_(std::move(prefix)) {}

  // Appends the lines that `bytes` complete to *out.
  void Append(absl::string_view bytes, std::string* out);
  // Appends what is left as a line: nothing follows.
  void Finish(std::string* out);

 private:
  void EndLine(std::string* out);

  std::string prefix_;
  std::string line_;
};

// A descriptor of somebody else's that is written to when it can take something, so that a reader who has stopped (a
// pager) keeps the writer from nothing else. After an error, such as a reader that is gone, all is dropped silently: a
// closed terminal ends no run.
class OutputStream {
 public:
  explicit OutputStream(int fd) : fd_(fd) {}

  int fd() const { return fd_; }
  // Whole lines are appended here.
  std::string* pending() { return &pending_; }
  bool is_empty() const { return pending_.empty(); }
  // Whoever appends should wait.
  bool is_full() const { return pending_.size() >= kFull; }
  void Drop() { pending_.clear(); }

  // Writes as much as a descriptor that poll calls ready takes without waiting.
  void WriteSome();

 private:
  static constexpr size_t kFull = size_t{256} << 10;

  int fd_;
  bool is_broken_ = false;
  std::string pending_;
};

}  // namespace ssl

#endif  // SSL_LAUNCH_LINE_OUTPUT_H_
