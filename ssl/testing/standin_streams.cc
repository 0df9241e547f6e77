// SPDX-License-Identifier: Apache-2.0
#include "ssl/testing/standin_streams.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

namespace ssl {
namespace {

constexpr c10::StreamId kDefault = 0;

struct Queue {
  std::deque<std::function<void()>> copies;
  int64_t done = 0;
  absl::Time busy_until = absl::InfinitePast();

  int64_t given() const { return done + static_cast<int64_t>(copies.size()); }
};

// The moment when a stream has done so many copies.
struct Event {
  c10::StreamId stream = kDefault;
  int64_t copies = 0;
  absl::Time due = absl::InfinitePast();  // by the clock of a late device
};

// Of the process, as LibTorch's devices are.
struct Streams {
  std::mutex mutex;
  c10::StreamId last = kDefault;
  std::map<c10::StreamId, Queue> queues;
  int64_t logs = 0;  // alive
  std::vector<std::string> entries;
  ManualClock* clock = nullptr;  // of a device that is late
  absl::Duration per_operation;

  // Those below expect the mutex to be held.
  void Log(const std::string& entry) {
    if (logs > 0) entries.push_back(entry);
  }

  void KeepBusy(c10::StreamId stream, int64_t operations) {
    if (clock == nullptr) return;
    absl::Time& busy_until = queues[stream].busy_until;
    busy_until = std::max(busy_until, clock->Now()) + operations * per_operation;
  }

  void WaitUntil(absl::Time time) {
    if (clock != nullptr && time > clock->Now()) clock->Advance(time - clock->Now());
  }

  void RunUntil(const Event& event) {
    Queue& queue = queues[event.stream];
    for (; queue.done < event.copies; ++queue.done) {
      queue.copies.front()();
      queue.copies.pop_front();
    }
  }
};

Streams& Process() {
  static auto& streams = *new Streams;
  return streams;
}

thread_local c10::StreamId current_stream = kDefault;

c10::Stream StreamOf(c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, {c10::DeviceType::PrivateUse1, 0}, id);
}

// The number of the first entry.
size_t BeginLog() {
  const std::lock_guard<std::mutex> lock(Process().mutex);
  ++Process().logs;
  return Process().entries.size();
}

std::string Name(c10::StreamId id) { return id == kDefault ? "main" : "side"; }

}  // namespace

StreamLog::StreamLog() : first_(BeginLog()) {}

StreamLog::~StreamLog() {
  const std::lock_guard<std::mutex> lock(Process().mutex);
  --Process().logs;
}

std::vector<std::string> StreamLog::entries() const {
  const std::lock_guard<std::mutex> lock(Process().mutex);
  const std::vector<std::string>& all = Process().entries;
  return {all.begin() + static_cast<std::ptrdiff_t>(first_), all.end()};
}

void StreamLog::Note(const std::string& what) {
  const std::lock_guard<std::mutex> lock(Process().mutex);
  Process().Log(what);
}

LateStandin::LateStandin(ManualClock* clock, absl::Duration per_operation) {
  const std::lock_guard<std::mutex> lock(Process().mutex);
  Process().clock = clock;
  Process().per_operation = per_operation;
}

LateStandin::~LateStandin() {
  const std::lock_guard<std::mutex> lock(Process().mutex);
  Process().clock = nullptr;
  for (auto& [stream, queue] : Process().queues) queue.busy_until = absl::InfinitePast();
}

void KeepStandinBusy(int64_t operations) {
  const std::lock_guard<std::mutex> lock(Process().mutex);
  Process().KeepBusy(current_stream, operations);
}

void WaitForStandinStream(const c10::Stream& stream) {
  FinishStandinStream(stream);
  const std::lock_guard<std::mutex> lock(Process().mutex);
  Process().WaitUntil(Process().queues[stream.id()].busy_until);
}

c10::Stream CurrentStandinStream() { return StreamOf(current_stream); }

c10::Stream ExchangeStandinStream(const c10::Stream& stream) {
  return StreamOf(std::exchange(current_stream, stream.id()));
}

c10::Stream NewStandinStream() {
  const std::lock_guard<std::mutex> lock(Process().mutex);
  return StreamOf(++Process().last);
}

void CopyOnStandinStream(std::function<void()> copy) {
  if (current_stream == kDefault) return copy();
  Streams& streams = Process();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  streams.Log(Name(current_stream) + " copies");
  streams.queues[current_stream].copies.push_back(std::move(copy));
  streams.KeepBusy(current_stream, 1);
}

void FinishStandinStream(const c10::Stream& stream) {
  if (stream.id() == kDefault) return;
  Streams& streams = Process();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  streams.RunUntil({stream.id(), streams.queues[stream.id()].given()});
}

void FinishStandinStreams() {
  Streams& streams = Process();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  for (const auto& [stream, queue] : streams.queues) {
    streams.RunUntil({stream, queue.given()});
    streams.WaitUntil(queue.busy_until);
  }
}

bool StandinStreamIsDone(const c10::Stream& stream) {
  Streams& streams = Process();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  return streams.queues[stream.id()].copies.empty();
}

void RecordStandinEvent(void** event, const c10::Stream& stream) {
  Streams& streams = Process();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  if (*event == nullptr) *event = new Event;
  const Queue& queue = streams.queues[stream.id()];
  *static_cast<Event*>(*event) = {stream.id(), queue.given(), queue.busy_until};
  streams.Log(Name(stream.id()) + " records");
}

// To do the work now is in order for any stream that waits.
void BlockOnStandinEvent(void* event, const c10::Stream& stream) {
  Streams& streams = Process();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  const Event& awaited = *static_cast<const Event*>(event);
  streams.Log(Name(stream.id()) + " waits for " + Name(awaited.stream));
  streams.RunUntil(awaited);
  absl::Time& busy_until = streams.queues[stream.id()].busy_until;
  busy_until = std::max(busy_until, awaited.due);
}

bool StandinEventIsDone(void* event) {
  Streams& streams = Process();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  const Event& asked = *static_cast<const Event*>(event);
  return streams.queues[asked.stream].done >= asked.copies;
}

void WaitForStandinEvent(void* event) {
  Streams& streams = Process();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  const Event& awaited = *static_cast<const Event*>(event);
  streams.Log("host waits for " + Name(awaited.stream));
  streams.RunUntil(awaited);
  streams.WaitUntil(awaited.due);
}

void DestroyStandinEvent(void* event) { delete static_cast<Event*>(event); }

}  // namespace ssl
