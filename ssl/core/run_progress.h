// SPDX-License-Identifier: Apache-2.0
//
// Where a run stands, as plain values: what a report about its end says, also when the session is gone. The session
// fills it in (SessionOptions::progress) after each of its calls, on its own thread.
#ifndef SSL_CORE_RUN_PROGRESS_H_
#define SSL_CORE_RUN_PROGRESS_H_

#include <cstdint>
#include <string>

namespace ssl {

struct RunProgress {
  int64_t rank = 0;
  // "building", "starting", "training", "testing", "finishing", "finished" or "stopped"; after an error, where it came.
  std::string phase = "building";
  int64_t iteration = 0;         // optimizer updates done
  int64_t epoch = -1;            // train phase, from 0; -1 before the first
  int64_t last_checkpoint = -1;  // iteration of the last one that this process saved or resumed from; -1 for none
  // The handler whose error ended the run, such as "checkpoint" and "OnStep"; empty when it was none.
  std::string failing_hook = {};
  std::string failing_event = {};
};

}  // namespace ssl

#endif  // SSL_CORE_RUN_PROGRESS_H_
