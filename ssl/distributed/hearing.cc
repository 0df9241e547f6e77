// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/hearing.h"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "ssl/distributed/store_members.h"

namespace ssl {
namespace {

constexpr absl::Duration kQuestionPeriod = absl::Milliseconds(100);
// Beyond its patience, for the rank that asks all others to write down what it has heard: on a machine that does other
// work, and five questions for each rank.
constexpr absl::Duration kWritingTime = absl::Seconds(1);
constexpr absl::Duration kWritingTimeOfARank = absl::Milliseconds(1);
// Recorders that may be missed in turn, within LongestTime.
constexpr int64_t kRecorders = 2;
// Of ranks that did not answer the recorder, how many a later reader asks again: all ranks may be such readers.
constexpr int64_t kAskedAgain = 64;

constexpr char kRecord[] = "record";  // what the recorder has heard of all

// What a line of the record says of ranks.
constexpr char kEnded[] = "ended";
constexpr char kStopped[] = "stopped";
constexpr char kSilent[] = "silent";
constexpr char kIsIn[] = " is in ";  // another operation
constexpr char kAreIn[] = " are in ";

// How many ranks have come to be the recorder: the first is. The next turn is for when that one writes nothing.
std::string Recorder(int64_t turn) { return absl::StrCat("recorder/", turn); }
std::string Failed(int64_t rank) { return absl::StrCat("failed/", rank); }  // the operation that it could not finish
// Set when it has read what the others say. Not the key by which rank 0 knows that its verdict was read, which all
// ranks of a world have set long ago.
std::string HeardOthers(int64_t rank) { return absl::StrCat("heard_others/", rank); }

// A line of the record, whose fields have tabs between them.
std::string Line(absl::string_view kind, absl::string_view names, absl::string_view rest) {
  return absl::StrCat(kind, "\t", names, "\t", rest, "\n");
}

const char* StateOf(const ProcessIdentity& process) {
  return process.HasEnded() ? kEnded : process.IsStopped() ? kStopped : kSilent;
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
      record += Line(StateOf(who.process), who.name, absl::StrCat(rank, " ", who.process.ToText()));
    }
  }
  for (const auto& [operation, names] : operations) {
    record += Line(names.size() == 1 ? kIsIn : kAreIn, Enumerate(names), operation);
  }
  return record;
}

absl::Duration WritingTime(int64_t size) { return kWritingTime + size * kWritingTimeOfARank; }

// One rank asks for all, the first that comes: each for itself, they would ask as often as the square of their number.
// When that one has gone, or is stopped, the next is chosen likewise; by then, no answer is worth waiting for.
std::string RecordOf(const Hearing& hearing, c10d::Store& store) {
  absl::Duration patience = hearing.patience;
  for (int64_t turn = 1;; ++turn) {
    if (store.add(Recorder(turn), 1) == 1) {
      const std::string record = AskAll(hearing.size, patience, store);
      store.set(kRecord, record);
      return record;
    }
    const absl::Time deadline = absl::Now() + patience + WritingTime(hearing.size);
    if (AwaitKeys({kRecord}, deadline, store)) return store.get_to_str(kRecord);
    patience = absl::ZeroDuration();
  }
}

// What is left of the record for one reader: ranks by what they are, and processes that do not answer it.
struct Reading {
  std::map<std::string, std::vector<std::string>> names;
  std::vector<std::string> elsewhere;
  std::vector<std::string> silent_processes;
};

// Of a rank that did not answer the recorder. It may have come since; and who is on its host sees what has become of
// it, which the recorder may not have been.
void JudgeAgain(absl::string_view state, const std::string& name, absl::string_view identity, const Hearing& hearing,
                bool asks, c10d::Store& store, Reading* reading) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(identity, absl::MaxSplits(' ', 1));
  int64_t rank = 0;
  if (asks && absl::SimpleAtoi(parts.first, &rank) && store.check({Failed(rank)})) {
    const std::string operation = store.get_to_str(Failed(rank));
    if (operation != hearing.operation) reading->elsewhere.push_back(absl::StrCat(name, kIsIn, operation));
    return;
  }
  const ProcessIdentity process = ProcessIdentity::FromText(parts.second);
  const std::string now = process.IsRunning() || process.HasEnded() ? StateOf(process) : std::string(state);
  reading->names[now].push_back(name);
  if (now != kEnded) reading->silent_processes.push_back(process.Name());
}

// Without this rank itself, which may have come after the record was written.
Reading Read(const Hearing& hearing, const std::string& record, absl::string_view own_name, c10d::Store& store) {
  Reading reading;
  int64_t asked = 0;
  for (const absl::string_view line : absl::StrSplit(record, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    if (fields.size() != 3 || fields[1] == own_name || fields[2] == hearing.operation) continue;
    if (fields[0] == kIsIn || fields[0] == kAreIn) {
      reading.elsewhere.push_back(absl::StrCat(fields[1], fields[0], fields[2]));
    } else {
      JudgeAgain(fields[0], fields[1], fields[2], hearing, asked++ < kAskedAgain, store, &reading);
    }
  }
  return reading;
}

PeerReport Describe(Reading reading) {
  std::map<std::string, std::vector<std::string>>& names = reading.names;
  std::vector<std::string> parts;
  if (!names[kEnded].empty()) parts.push_back(Enumerate(names[kEnded]) + " ended");
  if (!names[kStopped].empty()) {
    parts.push_back(absl::StrCat("no answer from ", Enumerate(names[kStopped]), ", stopped (SIGSTOP, or a debugger)"));
  }
  if (!names[kSilent].empty()) {
    parts.push_back(absl::StrCat("no answer from ", Enumerate(names[kSilent]), ", which hangs, is elsewhere or ended"));
  }
  if (!reading.elsewhere.empty()) parts.push_back(absl::StrJoin(reading.elsewhere, ", "));
  if (parts.empty()) parts.push_back("all ranks are in this operation and answer, their connections broke");
  return {absl::StrJoin(parts, "; "), absl::StrJoin(reading.silent_processes, ", ")};
}

}  // namespace

absl::Duration LongestTime(const Hearing& hearing) { return hearing.patience + kRecorders * WritingTime(hearing.size); }

PeerReport HoldHearing(const Hearing& hearing, c10d::Store& store) {
  store.set(Failed(hearing.rank), hearing.operation);
  const std::string record = RecordOf(hearing, store);
  PeerReport report = Describe(Read(hearing, record, IntroductionOf(hearing.rank, store).name, store));
  if (hearing.rank == 0) {
    AwaitListeners(Failed, HeardOthers, hearing.size, store);
  } else {
    store.set(HeardOthers(hearing.rank), std::string("1"));
  }
  return report;
}

}  // namespace ssl
