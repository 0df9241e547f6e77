// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of the stand-in device tell the graph that records them (standin_graph.h).
#ifndef SSL_TESTING_STANDIN_RECORDING_H_
#define SSL_TESTING_STANDIN_RECORDING_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"

namespace ssl {

// Operations in the order in which they were done. Notes come from any thread.
class StandinRecording {
 public:
  void Note(std::function<void()> operation);

  // Keeps the first one's name.
  void Refuse(const std::string& operation);

  // The operation that a recording cannot hold; "" without one.
  std::string refused() const;

  // Does the operations again. May throw LibTorch exceptions.
  void Replay() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::function<void()>> operations_;
  std::string refused_;
};

// That of the calling thread, and of autograd's threads in a backward that it runs. Null: nothing is recorded.
StandinRecording* CurrentStandinRecording();

// Runs `work` with `recording` as the thread's.
void WithStandinRecording(std::shared_ptr<StandinRecording> recording, absl::FunctionRef<void()> work);

// For kernels whose work is `operation`: does it, and notes it where a recording is under way.
void RunAndNote(std::function<void()> operation);

// For kernels that make the host wait: a LibTorch exception that names `operation` where a recording is under way.
void RefuseInRecording(const std::string& operation);

}  // namespace ssl

#endif  // SSL_TESTING_STANDIN_RECORDING_H_
