// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/store_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/process_identity.h"

namespace ssl {
namespace {

// c10d's FileStore appends keys and values in turn, each behind its length. Read as bytes: to open a store is to be
// counted among its users.
bool TakeText(absl::string_view* bytes, absl::string_view* text) {
  uint32_t size = 0;
  if (bytes->size() < sizeof(size)) return false;
  std::memcpy(&size, bytes->data(), sizeof(size));
  bytes->remove_prefix(sizeof(size));
  if (bytes->size() < size) return false;
  *text = bytes->substr(0, size);
  bytes->remove_prefix(size);
  return true;
}

// What a store's file has; how much of its end is no whole key and value.
struct StoreContent {
  std::vector<ProcessIdentity> members;  // of all that have introduced themselves (store_members.h)
  size_t rest = 0;
};

// "member/3" and "4 <process>".
StoreContent Parse(absl::string_view bytes) {
  StoreContent content;
  absl::string_view key, value;
  content.rest = bytes.size();
  while (TakeText(&bytes, &key) && TakeText(&bytes, &value)) {
    content.rest = bytes.size();
    const size_t space = value.find(' ');
    if (!absl::StrContains(key, "/member/") || space == absl::string_view::npos) continue;
    content.members.push_back(ProcessIdentity::FromText(value.substr(space + 1)));
  }
  return content;
}

absl::Status FileError(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("rendezvous file ", path, " (config.DISTRIBUTED.RUN_ID): ", what));
}

// "" where there is no file. Behind whoever writes: c10d locks the file for each key and value.
absl::StatusOr<std::string> ReadLocked(const std::string& path) {
  std::string bytes;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0 && errno == ENOENT) return bytes;
  if (file < 0) return FileError(path, absl::StrCat("opening failed: ", std::strerror(errno)));
  const auto close_file = absl::MakeCleanup([file] { close(file); });
  struct stat found;
  if (fstat(file, &found) != 0 || !S_ISREG(found.st_mode)) {
    return FileError(path, "is no file, expected one that all ranks reach, or a name at which there is none yet");
  }
  if (flock(file, LOCK_SH) != 0) return FileError(path, absl::StrCat("locking failed: ", std::strerror(errno)));
  char part[4096];
  ssize_t got = 0;
  while ((got = read(file, part, sizeof(part))) > 0) bytes.append(part, static_cast<size_t>(got));
  if (got < 0) return FileError(path, absl::StrCat("reading failed: ", std::strerror(errno)));
  return bytes;
}

}  // namespace

absl::Status CheckStoreFile(const std::string& path) {
  // c10d would wait for the directory for minutes.
  const std::string directory = path.substr(0, path.rfind('/') + 1);
  struct stat found;
  if (!directory.empty() && (stat(directory.c_str(), &found) != 0 || !S_ISDIR(found.st_mode))) {
    return FileError(path, absl::StrCat("there is no directory ", directory));
  }
  SSL_ASSIGN_OR_RETURN(const std::string bytes, ReadLocked(path));
  const size_t rest = Parse(bytes).rest;
  if (rest == 0) return absl::OkStatus();
  // c10d would wait for the rest for ever.
  return FileError(path, absl::StrCat("its last ", rest, " of ", bytes.size(),
                                      " bytes are nothing that ranks write whole: another program's, or left of a ",
                                      "start that was cut off; remove it, or name another one"));
}

absl::StatusOr<bool> IsStoreOfEndedRanks(const std::string& path) {
  SSL_ASSIGN_OR_RETURN(const std::string bytes, ReadLocked(path));
  const StoreContent content = Parse(bytes);
  for (const ProcessIdentity& member : content.members) {
    if (!member.HasEnded()) return false;
  }
  return !content.members.empty();
}

absl::StatusOr<bool> RemoveStoreOfEndedRanks(const std::string& path) {
  SSL_ASSIGN_OR_RETURN(const bool has_ended, IsStoreOfEndedRanks(path));
  if (!has_ended) return false;
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return true;
  return absl::InternalError(
      absl::StrCat(path, ", left by ranks that have ended, cannot be removed: ", std::strerror(errno)));
}

}  // namespace ssl
