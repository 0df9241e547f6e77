// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/store_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
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

// Of all that have introduced themselves (store_members.h): "member/3" and "4 <process>".
std::vector<ProcessIdentity> Members(absl::string_view bytes) {
  std::vector<ProcessIdentity> members;
  absl::string_view key, value;
  while (TakeText(&bytes, &key) && TakeText(&bytes, &value)) {
    const size_t space = value.find(' ');
    if (!absl::StrContains(key, "/member/") || space == absl::string_view::npos) continue;
    members.push_back(ProcessIdentity::FromText(value.substr(space + 1)));
  }
  return members;
}

}  // namespace

absl::StatusOr<bool> RemoveStoreOfEndedRanks(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::vector<ProcessIdentity> members = Members(bytes);
  if (members.empty()) return false;
  for (const ProcessIdentity& member : members) {
    if (!member.HasEnded()) return false;
  }
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return true;
  return absl::InternalError(
      absl::StrCat(path, ", left by ranks that have ended, cannot be removed: ", std::strerror(errno)));
}

}  // namespace ssl
