// SPDX-License-Identifier: Apache-2.0
//
// Whether a directory is still the one that it was, for a process that reads it without a lock. It is kept open, so
// that the system gives its number to no other one.
//
//   const WatchedDirectory checkpoints("/runs/a/checkpoints");
//   ... evaluate ...
//   if (checkpoints.IsReplaced()) ...   // the figures are of a run that is gone
#ifndef SSL_TOOLS_WATCHED_DIRECTORY_H_
#define SSL_TOOLS_WATCHED_DIRECTORY_H_

#include <string>

namespace ssl {

// Thread-safe.
class WatchedDirectory {
 public:
  // Of no place when `path` is no directory that can be opened.
  explicit WatchedDirectory(std::string path);
  ~WatchedDirectory();
  WatchedDirectory(const WatchedDirectory&) = delete;
  WatchedDirectory& operator=(const WatchedDirectory&) = delete;

  const std::string& path() const { return path_; }

  // Nothing, or something else, lies at the path now. Never so of no place.
  bool IsReplaced() const;

 private:
  const std::string path_;
  const int fd_;
};

}  // namespace ssl

#endif  // SSL_TOOLS_WATCHED_DIRECTORY_H_
