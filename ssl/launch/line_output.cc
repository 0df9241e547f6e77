// SPDX-License-Identifier: Apache-2.0
#include "ssl/launch/line_output.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"

namespace ssl {

void LineSplitter::Append(absl::string_view bytes, std::string* out) {
  for (const char byte : bytes) {
    if (byte == '\n' || line_.size() == kMaxLine) EndLine(out);
    if (byte != '\n') line_ += byte;
  }
}

void LineSplitter::Finish(std::string* out) {
  if (!line_.empty()) EndLine(out);
}

void LineSplitter::EndLine(std::string* out) {
  absl::StrAppend(out, prefix_, line_, "\n");
  line_.clear();
}

void OutputStream::WriteSome() {
  // A pipe that is ready takes PIPE_BUF bytes; more might wait.
  const ssize_t written = write(fd_, pending_.data(), std::min<size_t>(pending_.size(), PIPE_BUF));
  if (written >= 0) {
    pending_.erase(0, static_cast<size_t>(written));
  } else if (errno != EINTR && errno != EAGAIN) {
    is_broken_ = true;
  }
  if (is_broken_) pending_.clear();
}

}  // namespace ssl
