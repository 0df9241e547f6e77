// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/watched_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace ssl {

WatchedDirectory::WatchedDirectory(std::string path)
    : path_(std::move(path)), fd_(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

WatchedDirectory::~WatchedDirectory() {
  if (fd_ >= 0) close(fd_);
}

bool WatchedDirectory::IsReplaced() const {
  if (fd_ < 0) return false;
  struct stat opened = {};
  struct stat found = {};
  if (fstat(fd_, &opened) != 0 || stat(path_.c_str(), &found) != 0) return true;
  return opened.st_dev != found.st_dev || opened.st_ino != found.st_ino;
}

}  // namespace ssl
