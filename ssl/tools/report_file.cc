// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/report_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/io/file_system.h"

namespace ssl {
namespace {

bool WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace

ReportFile::ReportFile(const std::string& path)
    : directory_(open(ParentDirectory(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
      name_(path.substr(path.rfind('/') + 1)),
      temporary_(absl::StrCat(name_, ".tmp-", getpid())) {}

ReportFile::~ReportFile() {
  if (directory_ >= 0) close(directory_);
}

ReportFile::ReportFile(ReportFile&& other) noexcept { *this = std::move(other); }

ReportFile& ReportFile::operator=(ReportFile&& other) noexcept {
  std::swap(directory_, other.directory_);
  std::swap(name_, other.name_);
  std::swap(temporary_, other.temporary_);
  return *this;
}

void ReportFile::Replace(absl::string_view text) const noexcept {
  if (directory_ < 0) return;
  const int fd = openat(directory_, temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return;  // also when the directory was removed
  const bool written = WriteAll(fd, text) && fsync(fd) == 0;
  close(fd);
  if (written && renameat(directory_, temporary_.c_str(), directory_, name_.c_str()) == 0) {
    fsync(directory_);
  } else {
    unlinkat(directory_, temporary_.c_str(), 0);
  }
}

}  // namespace ssl
