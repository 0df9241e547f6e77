// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/process_identity.h"

#include <unistd.h>

#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ssl/base/host_name.h"

namespace ssl {
namespace {

std::string FirstLine(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

// Empty when /proc does not tell: then no process is said to have ended.
std::string ThisScope() {
  char name_space[64] = "";
  if (readlink("/proc/self/ns/pid", name_space, sizeof(name_space) - 1) < 0) return "";
  return absl::StrCat(FirstLine("/proc/sys/kernel/random/boot_id"), "/", name_space);
}

}  // namespace

ProcessIdentity ProcessIdentity::OfThisProcess() { return {getpid(), ThisScope(), HostName("")}; }

ProcessIdentity ProcessIdentity::FromText(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(' ', 2));
  ProcessIdentity identity;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &identity.pid)) return ProcessIdentity();
  identity.scope = parts[1];
  identity.host = parts[2];
  return identity;
}

std::string ProcessIdentity::ToText() const { return absl::StrCat(pid, " ", scope, " ", host); }

std::string ProcessIdentity::Name() const { return absl::StrCat("process ", pid, " on ", host); }

char ProcessIdentity::State() const {
  if (pid <= 0 || scope.empty() || scope != ThisScope()) return '?';
  // "17 (name of the program) S 1 ...": the state follows the last parenthesis, as the name may hold some.
  const std::string line = FirstLine(absl::StrCat("/proc/", pid, "/stat"));
  const size_t end = line.rfind(')');
  return end == std::string::npos || end + 2 >= line.size() ? 'X' : line[end + 2];
}

bool ProcessIdentity::HasEnded() const {
  const char state = State();
  return state == 'Z' || state == 'X';
}

bool ProcessIdentity::IsStopped() const {
  const char state = State();
  return state == 'T' || state == 't';
}

bool ProcessIdentity::IsRunning() const { return State() != '?' && !HasEnded(); }

}  // namespace ssl
