// SPDX-License-Identifier: Apache-2.0
//
// A pipe that closes itself. Both ends are closed in programs that the process starts. Not thread-safe.
#ifndef SSL_LAUNCH_PIPE_H_
#define SSL_LAUNCH_PIPE_H_

#include <utility>

#include "absl/status/statusor.h"

namespace ssl {

class Pipe {
 public:
  // Resources exhausted: ResourceExhausted.
  static absl::StatusOr<Pipe> Create();

  Pipe(Pipe&& other) noexcept : read_(std::exchange(other.read_, -1)), write_(std::exchange(other.write_, -1)) {}
  Pipe& operator=(Pipe&&) = delete;
  ~Pipe();

  int read_fd() const { return read_; }  // -1 once closed
  int write_fd() const { return write_; }
  void CloseRead();
  void CloseWrite();

 private:
  Pipe(int read, int write) : read_(read), write_(write) {}

  int read_;
  int write_;
};

// Calls that would wait return EAGAIN from now on, for everybody who shares this end.
void SetNonBlocking(int fd);

}  // namespace ssl

#endif  // SSL_LAUNCH_PIPE_H_
