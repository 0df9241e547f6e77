// SPDX-License-Identifier: Apache-2.0
#include "ssl/launch/pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace ssl {
namespace {

void Close(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

}  // namespace

absl::StatusOr<Pipe> Pipe::Create() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) == 0) return Pipe(fds[0], fds[1]);
  return absl::ResourceExhaustedError(absl::StrCat("making a pipe to a rank: ", std::strerror(errno)));
}

Pipe::~Pipe() {
  CloseRead();
  CloseWrite();
}

void Pipe::CloseRead() { Close(&read_); }

void Pipe::CloseWrite() { Close(&write_); }

void SetNonBlocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

}  // namespace ssl
