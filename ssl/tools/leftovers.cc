// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/leftovers.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ssl/base/host_name.h"
#include "ssl/base/log.h"
#include "ssl/engines/run_files.h"
#include "ssl/tools/failure_report.h"
#include "ssl/tools/shared_directory.h"

namespace ssl {
namespace {

// r of "rank<r><ending>"; -1 for any other name.
int64_t RankOf(absl::string_view name, absl::string_view ending) {
  int64_t rank = -1;
  const bool is_one = absl::ConsumePrefix(&name, "rank") && absl::ConsumeSuffix(&name, ending) &&
                      name.find_first_not_of("0123456789") == absl::string_view::npos && absl::SimpleAtoi(name, &rank);
  return is_one ? rank : -1;
}

constexpr absl::string_view kProcess = ": process ";

std::string OnThisHost() { return absl::StrCat(" on host ", HostName("unknown")); }

// By the last line in which a rank has introduced itself.
bool WriterHasEnded(absl::string_view log) {
  const size_t begin = log.rfind(kProcess);
  if (begin == absl::string_view::npos) return false;
  log.remove_prefix(begin + kProcess.size());
  const std::string of_this_host = OnThisHost() + "\n";
  const size_t digits = log.find_first_not_of("0123456789");
  int process = 0;
  if (digits == absl::string_view::npos || !absl::SimpleAtoi(log.substr(0, digits), &process) || process <= 0) {
    return false;
  }
  return absl::StartsWith(log.substr(digits), of_this_host) && kill(process, 0) != 0 && errno == ESRCH;
}

std::vector<std::string> NamesIn(const std::string& directory, FileSystem& file_system) {
  const absl::StatusOr<std::vector<std::string>> names = file_system.List(directory);
  return names.ok() ? *names : std::vector<std::string>();
}

void Remove(const std::string& path, FileSystem& file_system) {
  const absl::Status removed = file_system.RemoveFile(path);
  if (!removed.ok()) SSL_LOG(WARNING) << "left of an earlier run, and stays: " << removed.message();
}

}  // namespace

std::string IntroductionOfThisProcess() { return absl::StrCat(kProcess, getpid(), OnThisHost()); }

void RemoveLeftovers(const std::string& run_directory, int64_t ranks, FileSystem& file_system) {
  for (const std::string& name : NamesIn(run_directory, file_system)) {
    if (IsSharedMark(name)) Remove(absl::StrCat(run_directory, "/", name), file_system);
  }
  const std::string logs = absl::StrCat(run_directory, "/", kRankFolder);
  if (!CheckNoLink(logs).ok()) return;
  for (const std::string& name : NamesIn(logs, file_system)) {
    const std::string path = absl::StrCat(logs, "/", name);
    const bool is_report = RankOf(name, absl::StrCat("_", CommandFailureFile(kTrainCommand))) >= ranks;
    const bool is_log = RankOf(name, ".txt") >= ranks;
    if (is_report || (is_log && WriterHasEnded(file_system.Read(path).value_or("")))) Remove(path, file_system);
  }
}

}  // namespace ssl
