// SPDX-License-Identifier: Apache-2.0
//
// The operations of an update, recorded once and given to the device again at once: a CUDA graph on a GPU. One for each
// type of device that has them, in Registries::device_graphs.
#ifndef SSL_CORE_DEVICE_GRAPH_H_
#define SSL_CORE_DEVICE_GRAPH_H_

#include <functional>

#include "absl/status/status.h"

namespace ssl {

// Used by one thread, on the device that is its current one.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;

  // Runs `work` and records the operations that it queues. When it returns OK, they have been done once. Its error, or
  // FailedPrecondition with the operation's name when it waits for the device: then some may have been done, and
  // nothing is recorded.
  virtual absl::Status Record(const std::function<absl::Status()>& work) = 0;

  // Does the recorded operations again: on the same memory, with what lies in it now, and with random numbers that
  // follow the generator's state. Tensors that `work` made have their new values. May throw LibTorch exceptions.
  virtual void Replay() = 0;

  // Whether there is memory for work like the recorded one beside what the recording keeps, as far as that is known.
  virtual bool HasRoomBeside() const { return true; }
};

}  // namespace ssl

#endif  // SSL_CORE_DEVICE_GRAPH_H_
