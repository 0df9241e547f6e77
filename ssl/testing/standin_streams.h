// SPDX-License-Identifier: Apache-2.0
//
// Streams and events of the stand-in device. The default stream's work is done when its call returns. Copies from
// pinned memory that another stream is given are done as late as they may be: when something waits for an event behind
// them, or for the stream. So who overwrites the host's memory too early, or reads the device's without waiting, finds
// other bytes than on the CPU.
#ifndef SSL_TESTING_STANDIN_STREAMS_H_
#define SSL_TESTING_STANDIN_STREAMS_H_

#include <c10/core/Stream.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "ssl/base/testing/manual_clock.h"

namespace ssl {

// What streams and events were told while it lives, by all threads of the process, in order: "main records", "side
// waits for main", "side copies", "host waits for side". The default stream is "main". Thread-safe.
class StreamLog {
 public:
  StreamLog();
  ~StreamLog();
  StreamLog(const StreamLog&) = delete;
  StreamLog& operator=(const StreamLog&) = delete;

  std::vector<std::string> entries() const;

  // For tests: what the test itself does between.
  static void Note(const std::string& what);

 private:
  const size_t first_;
};

// While it lives, the device is late by a test's clock: each operation keeps its stream busy for `per_operation`, one
// after the other, and whoever waits for a stream, an event or a value moves the clock to the moment when that is done.
// The clock moves by nothing else, so that the host takes no time. What is computed stays the same. One at a time.
//
//   ManualClock clock;
//   const LateStandin late(&clock, absl::Milliseconds(1));
class LateStandin {
 public:
  LateStandin(ManualClock* clock, absl::Duration per_operation);
  ~LateStandin();
  LateStandin(const LateStandin&) = delete;
  LateStandin& operator=(const LateStandin&) = delete;
};

// For the stand-in device itself; thread-safe.

// So many operations on the current stream.
void KeepStandinBusy(int64_t operations = 1);
// Of this thread.
c10::Stream CurrentStandinStream();
// Returns the one before.
c10::Stream ExchangeStandinStream(const c10::Stream& stream);
c10::Stream NewStandinStream();

// Does the copy, at once on the default stream, and late on others.
void CopyOnStandinStream(std::function<void()> copy);

// The host's wait for what the stream was given.
void WaitForStandinStream(const c10::Stream& stream);

// Does what the stream was given, without a wait of the host.
void FinishStandinStream(const c10::Stream& stream);
void FinishStandinStreams();  // of all
bool StandinStreamIsDone(const c10::Stream& stream);

// As DeviceGuardImplInterface has them.
void RecordStandinEvent(void** event, const c10::Stream& stream);
void BlockOnStandinEvent(void* event, const c10::Stream& stream);
bool StandinEventIsDone(void* event);
void WaitForStandinEvent(void* event);
void DestroyStandinEvent(void* event);

}  // namespace ssl

#endif  // SSL_TESTING_STANDIN_STREAMS_H_
