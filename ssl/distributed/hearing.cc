// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/hearing.h"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "ssl/distributed/store_members.h"

namespace ssl {
namespace {

constexpr absl::Duration kQuestionPeriod = absl::Milliseconds(100);

std::string Failed(int64_t rank) { return absl::StrCat("failed/", rank); }  // the operation that it could not finish
// Set when it has read what the others say. Not the key by which rank 0 knows that its verdict was read, which all
// ranks of a world have set long ago.
std::string HeardOthers(int64_t rank) { return absl::StrCat("heard_others/", rank); }

// Asks rather than waits for all keys: of a process that has ended, or is stopped, none will come.
void AwaitAnswers(const Hearing& hearing, c10d::Store& store) {
  const absl::Time deadline = absl::Now() + hearing.patience;
  for (int64_t other = 0; other < hearing.size; ++other) {
    const ProcessIdentity process = IntroductionOf(other, store).process;
    while (!store.check({Failed(other)}) && !process.HasEnded() && !process.IsStopped() && absl::Now() < deadline) {
      absl::SleepFor(kQuestionPeriod);
    }
  }
}

PeerReport Describe(const Hearing& hearing, c10d::Store& store) {
  std::vector<std::string> ended, stopped, silent, elsewhere, silent_processes;
  for (int64_t other = 0; other < hearing.size; ++other) {
    const Introduction who = IntroductionOf(other, store);
    if (store.check({Failed(other)})) {
      const std::string theirs = store.get_to_str(Failed(other));
      if (theirs != hearing.operation) elsewhere.push_back(absl::StrCat(who.name, " is in ", theirs));
    } else if (who.process.HasEnded()) {
      ended.push_back(who.name);
    } else {
      (who.process.IsStopped() ? stopped : silent).push_back(who.name);
      silent_processes.push_back(who.process.Name());
    }
  }
  std::vector<std::string> parts;
  if (!ended.empty()) parts.push_back(Enumerate(ended) + " ended");
  if (!stopped.empty()) {
    parts.push_back(absl::StrCat("no answer from ", Enumerate(stopped), ", stopped (SIGSTOP, or a debugger)"));
  }
  if (!silent.empty()) {
    parts.push_back(absl::StrCat("no answer from ", Enumerate(silent), ", which hangs, is elsewhere or ended"));
  }
  if (!elsewhere.empty()) parts.push_back(Enumerate(elsewhere));
  if (parts.empty()) parts.push_back("all ranks are in this operation and answer, their connections broke");
  return {absl::StrJoin(parts, "; "), absl::StrJoin(silent_processes, ", ")};
}

}  // namespace

PeerReport HoldHearing(const Hearing& hearing, c10d::Store& store) {
  store.set(Failed(hearing.rank), hearing.operation);
  AwaitAnswers(hearing, store);
  PeerReport report = Describe(hearing, store);
  if (hearing.rank == 0) {
    AwaitListeners(Failed, HeardOthers, hearing.size, store);
  } else {
    store.set(HeardOthers(hearing.rank), std::string("1"));
  }
  return report;
}

}  // namespace ssl
