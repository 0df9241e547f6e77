// SPDX-License-Identifier: Apache-2.0
//
// A float16 run that skips all of its updates learns nothing, however few they are: it ends in an error.
#ifndef SSL_CORE_SKIPPED_UPDATES_H_
#define SSL_CORE_SKIPPED_UPDATES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

class SelfSupervisionTask;

// OutOfRange when the last updates of `updates`, as many as the run has made, were skipped and are
// MODEL.AMP_PARAMS.MAX_SKIPPED_UPDATES or more, or as many as the whole run has; the message says what to lower. OK
// without a loss scale. The same on all ranks. Waits for the device.
absl::Status CheckSkippedUpdates(SelfSupervisionTask& task, int64_t updates);

// After each update, which TrainState does not count yet: the same, but on a device every LOG_FREQUENCY updates and
// after the last one alone, so that the error comes late there, and no step waits. Collective where it is an error.
absl::Status WatchSkippedUpdates(SelfSupervisionTask& task, Communicator& communicator);

}  // namespace ssl

#endif  // SSL_CORE_SKIPPED_UPDATES_H_
