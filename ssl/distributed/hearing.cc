// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/hearing.h"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "ssl/distributed/store_members.h"

namespace ssl {
namespace {

constexpr absl::Duration kQuestionPeriod = absl::Milliseconds(100);
// Beyond its patience, for the rank that asks all others to write down what it has heard.
constexpr absl::Duration kWritingTime = absl::Seconds(1);

constexpr char kRecorder[] = "recorder";  // how many ranks have come to the hearing
constexpr char kRecord[] = "record";      // what the first of them has heard of all

// What a line of the record says of ranks.
constexpr char kEnded[] = "ended";
constexpr char kStopped[] = "stopped";
constexpr char kSilent[] = "silent";
constexpr char kIsIn[] = " is in ";  // another operation
constexpr char kAreIn[] = " are in ";

std::string Failed(int64_t rank) { return absl::StrCat("failed/", rank); }  // the operation that it could not finish
// Set when it has read what the others say. Not the key by which rank 0 knows that its verdict was read, which all
// ranks of a world have set long ago.
std::string HeardOthers(int64_t rank) { return absl::StrCat("heard_others/", rank); }

// A line of the record, whose fields have tabs between them.
std::string Line(absl::string_view kind, absl::string_view names, absl::string_view rest) {
  return absl::StrCat(kind, "\t", names, "\t", rest, "\n");
}

// Asks rather than waits for all keys: of a process that has ended, or is stopped, none will come.
void AwaitAnswer(int64_t other, const ProcessIdentity& process, absl::Time deadline, c10d::Store& store) {
  while (!store.check({Failed(other)}) && !process.HasEnded() && !process.IsStopped() && absl::Now() < deadline) {
    absl::SleepFor(kQuestionPeriod);
  }
}

// What is known of all ranks: a line for each that does not answer, and one for each operation, in which most are
// together.
std::string AskAll(int64_t size, absl::Duration patience, c10d::Store& store) {
  const absl::Time deadline = absl::Now() + patience;
  std::vector<Introduction> members;
  for (int64_t rank = 0; rank < size; ++rank) {
    members.push_back(IntroductionOf(rank, store));
    AwaitAnswer(rank, members.back().process, deadline, store);
  }
  std::string record;
  std::map<std::string, std::vector<std::string>> operations;
  for (int64_t rank = 0; rank < size; ++rank) {
    const Introduction& who = members[rank];
    if (store.check({Failed(rank)})) {
      operations[store.get_to_str(Failed(rank))].push_back(who.name);
    } else {
      const char* state = who.process.HasEnded() ? kEnded : who.process.IsStopped() ? kStopped : kSilent;
      record += Line(state, who.name, who.process.Name());
    }
  }
  for (const auto& [operation, names] : operations) {
    record += Line(names.size() == 1 ? kIsIn : kAreIn, Enumerate(names), operation);
  }
  return record;
}

// One rank asks for all, the first that comes: each for itself, they would ask as often as the square of their number.
std::string RecordOf(const Hearing& hearing, c10d::Store& store) {
  if (store.add(kRecorder, 1) == 1) {
    const std::string record = AskAll(hearing.size, hearing.patience, store);
    store.set(kRecord, record);
    return record;
  }
  const absl::Time deadline = absl::Now() + hearing.patience + kWritingTime;
  if (AwaitKeys({kRecord}, deadline, store)) return store.get_to_str(kRecord);
  return AskAll(hearing.size, absl::ZeroDuration(), store);  // that one has gone, or is stopped
}

// The record, without this rank itself, which may have come after it was written.
PeerReport Describe(const Hearing& hearing, const std::string& record, absl::string_view own_name) {
  std::map<std::string, std::vector<std::string>> names;
  std::vector<std::string> elsewhere, silent_processes;
  for (const absl::string_view line : absl::StrSplit(record, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    if (fields.size() != 3 || fields[1] == own_name || fields[2] == hearing.operation) continue;
    if (fields[0] == kIsIn || fields[0] == kAreIn) {
      elsewhere.push_back(absl::StrCat(fields[1], fields[0], fields[2]));
      continue;
    }
    names[fields[0]].push_back(fields[1]);
    if (fields[0] != kEnded) silent_processes.push_back(fields[2]);
  }
  std::vector<std::string> parts;
  if (!names[kEnded].empty()) parts.push_back(Enumerate(names[kEnded]) + " ended");
  if (!names[kStopped].empty()) {
    parts.push_back(absl::StrCat("no answer from ", Enumerate(names[kStopped]), ", stopped (SIGSTOP, or a debugger)"));
  }
  if (!names[kSilent].empty()) {
    parts.push_back(absl::StrCat("no answer from ", Enumerate(names[kSilent]), ", which hangs, is elsewhere or ended"));
  }
  if (!elsewhere.empty()) parts.push_back(absl::StrJoin(elsewhere, ", "));
  if (parts.empty()) parts.push_back("all ranks are in this operation and answer, their connections broke");
  return {absl::StrJoin(parts, "; "), absl::StrJoin(silent_processes, ", ")};
}

}  // namespace

PeerReport HoldHearing(const Hearing& hearing, c10d::Store& store) {
  store.set(Failed(hearing.rank), hearing.operation);
  const std::string record = RecordOf(hearing, store);
  PeerReport report = Describe(hearing, record, IntroductionOf(hearing.rank, store).name);
  if (hearing.rank == 0) {
    AwaitListeners(Failed, HeardOthers, hearing.size, store);
  } else {
    store.set(HeardOthers(hearing.rank), std::string("1"));
  }
  return report;
}

}  // namespace ssl
